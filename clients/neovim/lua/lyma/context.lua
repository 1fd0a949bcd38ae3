local M = {}

---@param buffer integer
---@return boolean
local function is_file(buffer) return vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= "" end

---Let the server see all files that are open: what is not saved stands over the disk.
---@param client vim.lsp.Client
function M.attach_files(client)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and is_file(buffer) and not client.attached_buffers[buffer] then
      vim.lsp.buf_attach_client(buffer, client.id)
    end
  end
end

---@param buffer integer
---@param row integer from 0
---@param column integer in bytes
---@param client vim.lsp.Client
---@return lyma.Position
local function position(buffer, row, column, client)
  local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
  return { line = row, character = vim.str_utfindex(line, client.offset_encoding, math.min(column, #line), false) }
end

---@class lyma.Source what a prompt is about
---@field buffer integer
---@field cursor integer[] row from 1 and column in bytes
---@field first? integer the first selected line, from 1
---@field last? integer

---@param source lyma.Source
---@param client vim.lsp.Client
---@return lyma.Diagnostic[]
local function diagnostics(source, client)
  local first, last = source.first or source.cursor[1], source.last or source.cursor[1]
  local found = vim.tbl_filter(
    function(each) return each.lnum < last and (each.end_lnum or each.lnum) >= first - 1 end,
    vim.diagnostic.get(source.buffer)
  )
  return vim.tbl_map(function(each)
    local start = position(source.buffer, each.lnum, each.col, client)
    local stop = position(source.buffer, each.end_lnum or each.lnum, each.end_col or each.col, client)
    return {
      uri = vim.uri_from_bufnr(source.buffer),
      range = { start = start, ["end"] = stop },
      message = each.message,
      severity = each.severity,
      source = each.source,
    }
  end, found)
end

---What goes along with a prompt.
---@param source lyma.Source
---@param client vim.lsp.Client
---@return lyma.AskContext
function M.gather(source, client)
  local context = { documents = {} }
  for buffer in pairs(client.attached_buffers) do
    table.insert(context.documents, { uri = vim.uri_from_bufnr(buffer), version = vim.lsp.util.buf_versions[buffer] })
  end
  if is_file(source.buffer) then
    local start = position(source.buffer, source.cursor[1] - 1, source.cursor[2], client)
    local stop = start
    if source.first then
      start, stop = { line = source.first - 1, character = 0 }, { line = source.last, character = 0 }
    end
    context.active = {
      uri = vim.uri_from_bufnr(source.buffer),
      version = vim.lsp.util.buf_versions[source.buffer],
      selections = { { start = start, ["end"] = stop } },
    }
    context.diagnostics = diagnostics(source, client)
  end
  local here = vim.fn.getcwd()
  local name = vim.api.nvim_buf_get_name(source.buffer)
  if not client.root_dir and (not context.active or vim.startswith(name, here .. "/")) then
    context.root = vim.uri_from_fname(here)
  end
  return context
end

---The prompt, with the selected lines where the server cannot see them.
---@param prompt string
---@param source lyma.Source
---@return string|lyma.Block[]
function M.blocks(prompt, source)
  if not source.first or is_file(source.buffer) then return prompt end
  local lines = vim.api.nvim_buf_get_lines(source.buffer, source.first - 1, source.last, false)
  return { { type = "text", text = table.concat(lines, "\n") }, { type = "text", text = prompt } }
end

return M
