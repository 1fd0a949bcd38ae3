-- nvim --clean -l neovim_ask.lua ROOT COMMAND...: start a server, ask, cancel, edit; print what happened as JSON.
local root = arg[1]
local command = vim.list_slice(arg, 2)
local found = { deltas = {}, progress = {} }

local function fail(message)
  io.stderr:write(message .. '\n')
  vim.cmd('cquit 1')
end

local function wait(what, condition)
  if not vim.wait(20000, condition, 10) then
    fail('waited in vain for ' .. what)
  end
end

vim.cmd.edit(vim.fn.fnameescape(root .. '/a b.lua'))
local id = vim.lsp.start({
  name = 'lyma',
  cmd = command,
  root_dir = root,
  capabilities = vim.tbl_deep_extend('force', vim.lsp.protocol.make_client_capabilities(), {
    experimental = { lyma = { protocolVersion = 1, events = vim.empty_dict() } },
  }),
  handlers = {
    ['lyma/event'] = function(_, event)
      if event.type == 'item.delta' then
        table.insert(found.deltas, event.text)
      end
    end,
    ['$/progress'] = function(_, params)
      table.insert(found.progress, params.value.kind)
    end,
  },
})
if not id then
  fail('the server did not start')
end
local client = vim.lsp.get_client_by_id(id)
wait('initialize', function() return client.initialized end)

local function ask(params)
  local reply
  local _, request = client:request('lyma/ask', params, function(err, result)
    reply = err or result
  end)
  return request, function()
    wait('the answer to ' .. params.prompt, function() return reply ~= nil end)
    return reply
  end
end

local _, answer = ask({ prompt = 'hello', workDoneToken = 'one' })
found.answer = answer()

local deltas = found.deltas
found.deltas = {}
local request, cancelled = ask({ prompt = 'hello again' })
wait('the first words', function() return #found.deltas > 0 end)
client:cancel_request(request)
found.cancelled = cancelled()

vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'zero' })
vim.cmd('let &undolevels = &undolevels') -- a person's change is a step of its own in the undo history
local _, edited = ask({ prompt = 'edit it', context = { active = { uri = vim.uri_from_bufnr(0) } } })
found.edited = edited()
found.buffer = vim.api.nvim_buf_get_lines(0, 0, -1, false)
vim.cmd.undo()
found.undone = vim.api.nvim_buf_get_lines(0, 0, -1, false)

client:stop()
found.stopped = vim.wait(5000, function() return client:is_stopped() end, 10)
found.deltas = deltas
io.stdout:write(vim.json.encode(found) .. '\n')
