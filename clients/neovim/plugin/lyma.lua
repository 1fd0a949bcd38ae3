if vim.g.loaded_lyma then return end
vim.g.loaded_lyma = true

local is_new_enough = vim.fn.has("nvim-0.11") == 1
local commands = {
  Ask = { nargs = "*", range = true, bang = true, desc = "Ask Lyma; ! begins a new session" },
  Stop = { nargs = 0, desc = "Stop what Lyma is doing" },
  Approve = { nargs = "?", desc = "Look at an agent that waits for approval and decide" },
  Draft = { nargs = "+", desc = "Let Lyma draft an agent from a description" },
  Compile = { nargs = "?", desc = "Compile an agent's folder" },
  Run = { nargs = "+", desc = "Run an approved agent: its hash or name, then what it is to do" },
  Agents = { nargs = 0, desc = "List the agents" },
  Sessions = { nargs = "?", desc = "Go on with an earlier session" },
  Status = { nargs = 0, desc = "Show what is configured and how it fares" },
  Undo = { nargs = "?", desc = "Take back the files' changes of a session's last turn" },
  Models = { nargs = "?", desc = "List the models that the providers offer" },
}

for name, options in pairs(commands) do
  if options.nargs ~= 0 then
    options.complete = function(lead) return is_new_enough and require("lyma.complete").complete(name, lead) or {} end
  end
  vim.api.nvim_create_user_command("Lyma" .. name, function(given)
    if is_new_enough then
      require("lyma").run(name, given)
    else
      vim.notify("Lyma needs Neovim 0.11 or later.", vim.log.levels.ERROR)
    end
  end, options)
end

vim.keymap.set({ "n", "x" }, "<Plug>(lyma-ask)", ":LymaAsk<CR>", { silent = true })
vim.keymap.set({ "n", "x" }, "<Plug>(lyma-ask-new)", ":LymaAsk!<CR>", { silent = true })
vim.keymap.set({ "n", "x", "i" }, "<Plug>(lyma-stop)", "<Cmd>LymaStop<CR>")
vim.keymap.set("n", "<Plug>(lyma-approve)", "<Cmd>LymaApprove<CR>")
