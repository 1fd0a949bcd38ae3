-- nvim --clean -l neovim_action.lua ROOT COMMAND...: no plugin; fix a diagnostic, rewrite lines, undo; print what happened.
local root = arg[1]
local command = vim.list_slice(arg, 2)
local found = { titles = {}, progress = {} }

local function fail(message)
  io.stderr:write(message .. '\n')
  vim.cmd('cquit 1')
end

local function wait(what, condition)
  if not vim.wait(20000, condition, 10) then
    fail('waited in vain for ' .. what)
  end
end

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

vim.cmd.edit(vim.fn.fnameescape(root .. '/a b.lua'))
local id = vim.lsp.start({ name = 'lyma', cmd = command, root_dir = root })
local client = vim.lsp.get_client_by_id(id)
wait('initialize', function() return client.initialized end)
vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(event) table.insert(found.progress, event.data.params.value.kind) end,
})

local function act(kind, first, last)
  local before = table.concat(lines(), '\n')
  vim.lsp.buf.code_action({
    apply = true,
    context = { only = { kind }, diagnostics = found.diagnostics },
    range = { start = { first, 0 }, ['end'] = { last, 1 } },
    filter = function(action)
      table.insert(found.titles, action.title)
      return true
    end,
  })
  wait(kind, function() return table.concat(lines(), '\n') ~= before end)
  return lines()
end

local place = { start = { line = 1, character = 0 }, ['end'] = { line = 1, character = 3 } }
found.diagnostics = { { range = place, message = 'two is not 2', severity = 1 } }
found.fixed = act('quickfix', 2, 2)
vim.cmd.undo()
found.undone = lines()
vim.cmd('let &undolevels = &undolevels')
found.rewritten = act('refactor.rewrite', 2, 3)
found.diagnostics = nil

local reply
client:request('workspace/executeCommand', { command = 'lyma.ask', arguments = { 'hello' } }, function(err, result)
  reply = err or result
end)
wait('the transcript', function()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if vim.api.nvim_buf_get_name(buffer):find('/transcripts/') then
      found.transcript = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
    end
  end
  return reply ~= nil and found.transcript ~= nil
end)
client:stop()
io.stdout:write(vim.json.encode(found) .. '\n')
