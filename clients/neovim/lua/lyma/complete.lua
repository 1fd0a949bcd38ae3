local methods = require("lyma.protocol").methods

local M = {}

local PATIENCE_MS = 500

---Ask a server that runs already; completion starts none, and has nothing where none answers in time.
---@param method string
---@param params table
---@param rows string the field of the result that lists what is looked for
---@param ... string fields of each
---@return string[]
local function look_up(method, params, rows, ...)
  local client = vim.lsp.get_clients({ name = "lyma" })[1]
  local answer = client and client:request_sync(method, params, PATIENCE_MS)
  local found = {}
  for _, row in ipairs(answer and answer.result and answer.result[rows] or {}) do
    for _, field in ipairs({ ... }) do
      found[#found + 1] = row[field]
    end
  end
  return found
end

---@param lead string
---@return string[] files
local function mentions(lead)
  local name = lead:match("^@(.*)$")
  return vim.tbl_map(function(path) return "@" .. path end, name and vim.fn.getcompletion(name, "file") or {})
end

local function agents()
  return look_up(methods.subagent, { action = "list", root = require("lyma").root() }, "agents", "name", "hash")
end

local function sessions() return look_up(methods.sessions, { action = "list" }, "sessions", "session") end

---@type table<string, fun(lead: string): string[]>
local candidates = {
  Ask = mentions,
  Draft = mentions,
  Approve = agents,
  Run = agents,
  Compile = function(lead) return vim.list_extend(vim.fn.getcompletion(lead, "file"), agents()) end,
  Sessions = sessions,
  Undo = sessions,
  Models = function() return look_up(methods.status, vim.empty_dict(), "providers", "name") end,
}

---Complete an argument of one of the commands.
---@param name string of the command, without `Lyma`
---@param lead string what is being completed
---@return string[]
function M.complete(name, lead)
  local found = candidates[name] and candidates[name](lead) or {}
  return vim.tbl_filter(function(word) return vim.startswith(word, lead) end, found)
end

return M
