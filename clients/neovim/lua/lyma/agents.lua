local lyma = require("lyma")
local methods = require("lyma.protocol").methods

local M = {}

---@param method string
---@param params table
---@param go_on fun(result: any, client: vim.lsp.Client)
local function request(method, params, go_on)
  params.root = lyma.root()
  lyma.request(method, params, go_on)
end

---@param diagnostics lyma.AgentDiagnostic[]
---@param folder string
local function show_diagnostics(diagnostics, folder)
  local items = vim.tbl_map(function(each)
    local text = ("%s (%s)"):format(each.message, each.hint)
    return { filename = vim.fs.joinpath(folder, each.file), lnum = each.line or 1, text = text, type = "E" }
  end, diagnostics)
  vim.fn.setqflist({}, " ", { title = "Lyma: the agent does not compile", items = items })
  vim.cmd.copen()
end

---Let an agent be drafted, and open it.
---@param task string
function M.draft(task)
  request(methods.subagent, { action = "draft", task = task }, function(result, client)
    for _, note in ipairs(result.notes) do
      lyma.notify(note, vim.log.levels.WARN)
    end
    vim.lsp.util.show_document({ uri = result.uri }, client.offset_encoding, { focus = true })
  end)
end

---Compile an agent: a folder, its agent.toml, or the name of one; without any, the file that is open.
---@param place? string
function M.compile(place)
  place = place and place ~= "" and place or vim.api.nvim_buf_get_name(0)
  local path = vim.fn.fnamemodify(vim.fn.expand(place), ":p")
  path = vim.fn.isdirectory(path) == 1 and vim.fs.joinpath(path, "agent.toml") or path
  local params = { action = "compile" }
  if vim.fn.filereadable(path) == 1 then
    params.uri = vim.uri_from_fname(path)
  else
    params.agent = place
  end
  request(methods.subagent, params, function(result)
    if #result.diagnostics > 0 then
      return show_diagnostics(result.diagnostics, vim.fs.dirname(vim.uri_to_fname(result.uri)))
    end
    lyma.notify(("%s (%s)"):format(result.hash, result.approval))
  end)
end

---@param named string a hash or a name
---@param approval lyma.Standing of those with that name, one that stands so comes first
---@param go_on fun(hash: string, client: vim.lsp.Client)
local function resolve(named, approval, go_on)
  request(methods.subagent, { action = "list" }, function(result, client)
    local found
    for _, agent in ipairs(result.agents) do
      if agent.name == named and (not found or agent.approval == approval) then found = agent.hash end
    end
    go_on(found or named, client)
  end)
end

---Have a compiled agent shown and decide about it; without a name, what waits for an answer, or one of those that wait.
---@param named? string a hash or a name
function M.approve(named)
  if require("lyma.approve").ask_again(named) then return end
  local function approve(hash)
    local params = { action = "approve", hash = hash }
    request(methods.approve, params, function(result) lyma.notify(result.state or "unanswered") end)
  end
  if named and named ~= "" then return resolve(named, "waiting", approve) end
  M.choose("Approve which agent?", "waiting", function(agent) approve(agent.hash) end)
end

---Run an approved agent; its events go to a transcript of its own.
---@param words string a hash or a name, then what it is to do
function M.run(words)
  local name, task = words:match("^(%S+)%s*(.*)$")
  resolve(name, "approved", function(hash, client)
    local ask = require("lyma.ask")
    local view = ask.open(nil, client.id)
    view:head(words)
    local params = { action = "run", root = lyma.root(), hash = hash, input = task ~= "" and { text = task } or nil }
    ask.send(view, client, methods.subagent, params, function(answer)
      local run = answer.result
      local output = type(run.output) == "string" and run.output or vim.json.encode(run.output)
      view:append(("**%s** %s"):format(run.status, run.error or ""))
      view:append(output, nil, "    ")
    end)
  end)
end

---@param prompt string
---@param approval? string only those that stand so
---@param go_on fun(agent: lyma.AgentInfo)
function M.choose(prompt, approval, go_on)
  request(methods.subagent, { action = "list" }, function(result)
    local agents = vim.tbl_filter(function(agent) return not approval or agent.approval == approval end, result.agents)
    if #agents == 0 then return lyma.notify("there is no such agent.") end
    local function describe(agent)
      return ("%s  %s (%s) %s"):format(agent.hash:sub(1, 19), agent.name, agent.approval, agent.purpose)
    end
    vim.ui.select(agents, { prompt = prompt, format_item = describe }, function(agent)
      if agent then go_on(agent) end
    end)
  end)
end

---List the agents; one that is chosen is shown whole.
function M.agents()
  M.choose("Agents", nil, function(agent)
    local params = { action = "show", hash = agent.hash }
    request(methods.subagent, params, function(result) require("lyma.house").show({ result.agent.text }) end)
  end)
end

return M
