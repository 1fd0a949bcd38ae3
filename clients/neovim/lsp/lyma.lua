---@type vim.lsp.Config
return {
  cmd = { "lyma-server" },
  root_markers = { ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "Makefile" },
  capabilities = {
    experimental = {
      lyma = {
        protocolVersion = require("lyma.protocol").version,
        events = vim.empty_dict(),
        approvals = vim.empty_dict(),
        diagnostics = vim.empty_dict(),
      },
    },
  },
  handlers = {
    ["lyma/event"] = function(_, event, place) require("lyma.ask").hear(event, place.client_id) end,
    ["lyma/requestApproval"] = function(_, request) return require("lyma.approve").answer(request) end,
    ["workspace/applyEdit"] = function(_, params, place) return require("lyma.edit").apply(params, place.client_id) end,
  },
  on_exit = function(_, _, client_id)
    vim.schedule(function()
      local ask = package.loaded["lyma.ask"]
      if ask then ask.lose(client_id) end
    end)
  end,
}
