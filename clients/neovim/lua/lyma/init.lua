---Lyma in Neovim. Nothing needs to be called: `vim.lsp.enable("lyma")` or the first `:LymaAsk` starts the server.
local M = {}

---@param text string
---@param level? integer
function M.notify(text, level) vim.notify("Lyma: " .. text, level or vim.log.levels.INFO) end

---@return string uri of the folder that is worked in
function M.root() return vim.uri_from_fname(vim.fs.root(0, ".git") or vim.fn.getcwd()) end

---@param client vim.lsp.Client
---@param go_on fun(client?: vim.lsp.Client)
local function when_ready(client, go_on)
  if client.initialized then
    local offered = vim.tbl_get(client.server_capabilities, "experimental", "lyma", "protocolVersion")
    if offered == require("lyma.protocol").version then return go_on(client) end
    M.notify("The server speaks another version of the protocol; update the older of the two.", vim.log.levels.ERROR)
  elseif client:is_stopped() then
    M.notify("The server did not start; `:checkhealth lyma` says more.", vim.log.levels.ERROR)
  else
    return vim.defer_fn(function() when_ready(client, go_on) end, 10)
  end
  go_on(nil)
end

---Go on with the client of `buffer`, which is started where there is none.
---@param buffer integer
---@param go_on fun(client?: vim.lsp.Client) gets nothing where there is none; the person has been told
function M.with_client(buffer, go_on)
  local client = vim.lsp.get_clients({ name = "lyma", bufnr = buffer, _uninitialized = true })[1]
  if client then return when_ready(client, go_on) end
  local config = vim.deepcopy(vim.lsp.config.lyma)
  local program = type(config.cmd) == "table" and config.cmd[1]
  if program and vim.fn.executable(program) == 0 then
    local advice = "%s is not on the PATH; install it, or name it with vim.lsp.config('lyma', {cmd = {…}})."
    M.notify(advice:format(program), vim.log.levels.ERROR)
    return go_on(nil)
  end
  local is_file = vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
  config.root_dir = type(config.root_dir) == "string" and config.root_dir or vim.fs.root(buffer, config.root_markers)
  local id = vim.lsp.start(config, { bufnr = buffer, attach = is_file })
  client = id and vim.lsp.get_client_by_id(id)
  if not client then return go_on(nil) end
  when_ready(client, go_on)
end

---Send a request and go on with its result; an error is shown.
---@param method string
---@param params table
---@param go_on fun(result: any, client: vim.lsp.Client)
function M.request(method, params, go_on)
  local buffer = vim.api.nvim_get_current_buf()
  M.with_client(buffer, function(client)
    if not client then return end
    client:request(method, params, function(err, result)
      if err then
        M.notify(err.message, vim.log.levels.ERROR)
      else
        go_on(result, client)
      end
    end)
  end)
end

---Ask, with the lines that are selected; without a prompt, one is asked for.
---@param prompt? string
---@param options? lyma.AskOptions
function M.ask(prompt, options)
  if prompt and prompt:match("%S") then return require("lyma.ask").ask(prompt, options) end
  vim.ui.input({ prompt = "Ask Lyma: " }, function(text)
    if text and text:match("%S") then require("lyma.ask").ask(text, options) end
  end)
end

---Stop what is under way.
function M.stop() require("lyma.ask").stop() end

---For a statusline: what Lyma does, or what the last turn has cost; empty where it was not used.
---@return string
function M.statusline()
  local ask = package.loaded["lyma.ask"]
  local activity = ask and ask.activity or { running = 0 }
  if activity.running > 0 then return "Lyma: " .. activity.doing end
  local money = ask and require("lyma.render").money(activity.costMicros)
  return money and "Lyma " .. money or ""
end

---Where the commands are done that `lyma.agents` does not do; the function is the command's name in lower case.
local places = {
  Sessions = "lyma.house",
  Status = "lyma.house",
  Undo = "lyma.house",
  Models = "lyma.house",
  Stop = "lyma",
}

---Run one of the `:Lyma…` commands.
---@param name string without `Lyma`
---@param given vim.api.keyset.create_user_command.command_args
function M.run(name, given)
  if name == "Ask" then
    local first = given.range > 0 and given.line1 or nil
    local last = given.range > 0 and given.line2 or nil
    return M.ask(given.args, { is_new = given.bang, first = first, last = last })
  end
  require(places[name] or "lyma.agents")[name:lower()](given.args)
end

return M
