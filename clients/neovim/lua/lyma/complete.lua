local methods = require("lyma.protocol").methods

local M = {}

local PATIENCE_MS = 500

---Ask a server that runs already; completion starts none.
---@param method string
---@param params table
---@return any result nothing where none answers in time
local function look_up(method, params)
  local client = vim.lsp.get_clients({ name = "lyma" })[1]
  local answer = client and client:request_sync(method, params, PATIENCE_MS)
  return answer and answer.result
end

---@param rows? table[]
---@param ... string fields
---@return string[]
local function fields(rows, ...)
  local found = {}
  for _, row in ipairs(rows or {}) do
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
  local found = look_up(methods.subagent, { action = "list", root = require("lyma").root() })
  return fields(found and found.agents, "name", "hash")
end

local function sessions()
  local found = look_up(methods.sessions, { action = "list" })
  return fields(found and found.sessions, "session")
end

---@type table<string, fun(lead: string): string[]>
local candidates = {
  Ask = mentions,
  Draft = mentions,
  Approve = agents,
  Run = agents,
  Compile = function(lead) return vim.list_extend(vim.fn.getcompletion(lead, "file"), agents()) end,
  Sessions = sessions,
  Undo = sessions,
  Models = function()
    local found = look_up(methods.status, vim.empty_dict())
    return fields(found and found.providers, "name")
  end,
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
