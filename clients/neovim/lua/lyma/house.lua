local lyma = require("lyma")
local methods = require("lyma.protocol").methods
local render = require("lyma.render")

local M = {}

---Show lines in a split that `q` closes.
---@param lines string[]
---@param filetype? string without one, nothing of the text is hidden
---@param place? vim.api.keyset.win_config
---@return integer buffer
---@return integer window
function M.show(lines, filetype, place)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(table.concat(lines, "\n"), "\n"))
  vim.bo[buffer].modifiable, vim.bo[buffer].bufhidden, vim.bo[buffer].filetype = false, "wipe", filetype or ""
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer })
  return buffer, vim.api.nvim_open_win(buffer, true, place or { split = "below", win = 0 })
end

---@param status lyma.StatusResult
---@return string[]
function M.describe(status)
  local lines = { ("# Lyma %s, sandbox %s"):format(status.version, status.sandbox), "" }
  for _, provider in ipairs(status.providers) do
    local facts = { provider.model, provider.breaker, provider.tokensToday .. " tokens today" }
    facts[#facts + 1] = render.money(provider.costMicrosToday)
    lines[#lines + 1] = ("- **%s** %s"):format(provider.name, table.concat(facts, ", "))
    for _, key in ipairs(provider.keys) do
      local till = key["until"] and " until " .. key["until"] or ""
      lines[#lines + 1] = ("  - %s %s%s %s"):format(key.key, key.state, till, key.reason or ""):gsub(" $", "")
    end
  end
  return lines
end

---Show what is configured and how it fares.
function M.status()
  lyma.request(methods.status, vim.empty_dict(), function(status) M.show(M.describe(status), "markdown") end)
end

---List models; of one provider, or of all.
---@param provider? string
function M.models(provider)
  local params = provider ~= "" and { provider = provider } or vim.empty_dict()
  lyma.request(methods.models, params, function(result)
    local lines = {}
    for _, model in ipairs(result.models) do
      local size = model.contextTokens and (", %d tokens"):format(model.contextTokens) or ""
      lines[#lines + 1] = ("- **%s** %s%s"):format(model.provider, model.id, size)
    end
    for _, failure in ipairs(result.failures) do
      lines[#lines + 1] = ("- **%s** %s"):format(failure.provider, failure.message)
    end
    M.show(lines, "markdown")
  end)
end

---Go on with a session: replay it into a transcript. Without a name, one is chosen.
---@param session? string
function M.sessions(session)
  if session and session ~= "" then
    lyma.with_client(vim.api.nvim_get_current_buf(), function(client)
      if not client then return end
      local view = require("lyma.ask").open(session, client.id)
      client:request(methods.sessions, { action = "load", session = session }, function(err)
        if err then view:append(("**%s**"):format(err.message)) end
      end)
    end)
    return
  end
  lyma.request(methods.sessions, { action = "list" }, function(result)
    local function describe(info)
      local folder = info.root and vim.fs.basename(vim.uri_to_fname(info.root)) or "no folder"
      return ("%s  %s: %s"):format(info.updated:sub(1, 16):gsub("T", " "), folder, info.title)
    end
    vim.ui.select(result.sessions, { prompt = "Sessions", format_item = describe }, function(info)
      if info then M.sessions(info.session) end
    end)
  end)
end

---Take back what the last turn of a session changed; without a name, of the one in the transcript.
---@param session? string
function M.undo(session)
  session = session and session ~= "" and session or require("lyma.ask").session()
  if not session then return lyma.notify("There is no session yet.", vim.log.levels.WARN) end
  require("lyma.edit").begin_step()
  lyma.request(methods.sessions, { action = "undo", session = session }, function(result)
    vim.cmd("silent! checktime")
    local told = vim.tbl_map(function(file)
      local name = vim.fs.basename(vim.uri_to_fname(file.uri))
      return ("%s %s%s"):format(name, file.outcome, file.reason and " (" .. file.reason .. ")" or "")
    end, result.files)
    lyma.notify(table.concat(told, ", "))
  end)
end

return M
