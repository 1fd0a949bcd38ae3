local M = {}

---@param config vim.lsp.Config
---@return boolean
local function check_program(config)
  local program = type(config.cmd) == "table" and config.cmd[1]
  if not program then
    vim.health.ok("The server is started by a function of yours.")
    return true
  elseif vim.fn.executable(program) == 1 then
    vim.health.ok("The server is " .. vim.fn.exepath(program) .. ".")
    return true
  end
  vim.health.error(program .. " is not on the PATH.", {
    "Put the folder that holds it on the PATH of Neovim; one started from a desktop may lack what your shell has.",
    "Or name it in full: vim.lsp.config('lyma', { cmd = { '/folder/of/lyma-server' } })",
  })
  return false
end

---@param client vim.lsp.Client
local function check_client(client)
  local answer = client:request_sync("lyma/status", vim.empty_dict(), 10000)
  if not answer or answer.err then
    vim.health.error("The server does not say how it fares: " .. (answer and answer.err.message or "no answer."))
    return
  end
  for _, line in ipairs(require("lyma.house").describe(answer.result)) do
    if line ~= "" then vim.health.info((line:gsub("^[%s#-]+", ""))) end
  end
end

---What `:checkhealth lyma` reports.
function M.check()
  vim.health.start("Lyma")
  if vim.fn.has("nvim-0.11") == 0 then
    vim.health.error("Lyma needs Neovim 0.11 or later.")
    return
  end
  local config = vim.lsp.config.lyma
  if not config then
    vim.health.error("lsp/lyma.lua is not on the runtimepath; is the plugin installed?")
    return
  end
  if not check_program(config) then return end
  local client
  require("lyma").with_client(vim.api.nvim_get_current_buf(), function(ready) client = ready end)
  if vim.wait(10000, function() return client ~= nil end, 20) then
    check_client(client)
  else
    vim.health.error("The server did not start.", { "Look at " .. vim.lsp.log.get_filename() })
  end
end

return M
