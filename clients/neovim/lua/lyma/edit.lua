local M = {}

---@type table<integer, integer> the text's tick after the last edit of the turn, by buffer
local ticks = {}

---Edits that follow are a step of their own in the undo history.
function M.begin_step() ticks = {} end

---@param buffer integer
local function open_step(buffer)
  vim.api.nvim_buf_call(buffer, function()
    if ticks[buffer] == vim.api.nvim_buf_get_changedtick(buffer) then
      pcall(vim.cmd.undojoin)
    else
      vim.cmd("let &g:undolevels = &g:undolevels")
    end
  end)
end

---@param edit lsp.WorkspaceEdit
---@return integer[] buffers
---@return boolean is_stale whether one of them has changed meanwhile
local function touched(edit)
  local buffers, is_stale = {}, false
  for uri in pairs(edit.changes or {}) do
    buffers[#buffers + 1] = vim.uri_to_bufnr(uri)
  end
  for _, change in ipairs(edit.documentChanges or {}) do
    local document = change.textDocument
    if document then
      local buffer = vim.uri_to_bufnr(document.uri)
      local known = vim.lsp.util.buf_versions[buffer]
      buffers[#buffers + 1] = buffer
      is_stale = is_stale or (type(document.version) == "number" and known ~= nil and known > document.version)
    end
  end
  return buffers, is_stale
end

---Make the server's edit. All edits of a turn in a buffer are one step of its undo history, unless somebody changed it
---between two of them.
---@param params lsp.ApplyWorkspaceEditParams
---@param client_id integer
---@return lsp.ApplyWorkspaceEditResult
function M.apply(params, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  local buffers, is_stale = touched(params.edit)
  if is_stale or not client then return { applied = false, failureReason = "The document has changed." } end
  for _, buffer in ipairs(buffers) do
    vim.fn.bufload(buffer)
    open_step(buffer)
  end
  local applied, problem = pcall(vim.lsp.util.apply_workspace_edit, params.edit, client.offset_encoding)
  for _, buffer in ipairs(buffers) do
    ticks[buffer] = vim.api.nvim_buf_get_changedtick(buffer)
  end
  return { applied = applied, failureReason = not applied and tostring(problem) or nil }
end

return M
