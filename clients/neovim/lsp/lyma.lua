-- Of what an editor asks for by itself, Lyma does these for agent.toml only; elsewhere others and Vim's own come first.
local agents_only = { codeLens = true, completion = true, documentSymbol = true, hover = true }
local yes = vim.empty_dict()

---@type vim.lsp.Config
return {
  cmd = { "lyma-server" },
  root_markers = { ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "Makefile" },
  capabilities = {
    experimental = {
      lyma = { protocolVersion = require("lyma.protocol").version, events = yes, approvals = yes, diagnostics = yes },
    },
  },
  handlers = {
    ["lyma/event"] = function(_, event, place) require("lyma.ask").hear(event, place.client_id) end,
    ["lyma/requestApproval"] = function(_, request) return require("lyma.approve").answer(request) end,
    ["workspace/applyEdit"] = function(_, params, place) return require("lyma.edit").apply(params, place.client_id) end,
  },
  on_init = function(client)
    local supports = client.supports_method
    function client:supports_method(method, where)
      local buffer = type(where) == "number" and where or 0
      local is_agent = vim.fs.basename(vim.api.nvim_buf_get_name(buffer)) == "agent.toml"
      return (is_agent or not agents_only[method:match("^textDocument/(.*)$")]) and supports(self, method, where)
    end
  end,
  on_exit = function(_, _, client_id)
    vim.schedule(function()
      local ask = package.loaded["lyma.ask"]
      if ask then ask.lose(client_id) end
    end)
  end,
}
