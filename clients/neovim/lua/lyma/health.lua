local M = {}

---@param config vim.lsp.Config
---@return boolean
local function check_program(config)
  local program = type(config.cmd) == "table" and config.cmd[1]
  if program and vim.fn.executable(program) == 0 then
    vim.health.error(program .. " is not on the PATH.", {
      "Put the folder that holds it on the PATH of Neovim; one started from a desktop may lack what your shell has.",
      "Or name it in full: vim.lsp.config('lyma', { cmd = { '/folder/of/lyma-server' } })",
    })
    return false
  end
  vim.health.ok("The server is " .. (program and vim.fn.exepath(program) or "started by a function of yours") .. ".")
  return true
end

---@param client vim.lsp.Client
local function check_client(client)
  local answer = client:request_sync("lyma/status", vim.empty_dict(), 10000)
  if not answer or answer.err then
    return vim.health.error("The server does not say how it fares: " .. (answer and answer.err.message or "no answer."))
  end
  for _, line in ipairs(require("lyma.house").describe(answer.result)) do
    if line ~= "" then vim.health.info((line:gsub("^[%s#-]+", ""))) end
  end
end

---What `:checkhealth lyma` reports.
function M.check()
  vim.health.start("Lyma")
  local config = vim.lsp.config and vim.lsp.config.lyma
  if not config then
    return vim.health.error("Lyma needs Neovim 0.11 or later, and lsp/lyma.lua on the runtimepath.")
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
