local context = require("lyma.context")
local edit = require("lyma.edit")
local methods = require("lyma.protocol").methods
local render = require("lyma.render")

local M = {}

---@type lyma.View[] the latest used is the last
local views = {}

---@class lyma.Activity
---@field running integer asks under way
---@field doing string what the latest of them does
---@field costMicros? integer what the last turn has cost
M.activity = { running = 0, doing = "" }

---@param text string
local function tell_activity(text)
  if M.activity.doing ~= text then
    M.activity.doing = text
    vim.cmd.redrawstatus()
  end
end

---@param is_new? boolean
---@return lyma.View
local function choose_view(is_new)
  local current = vim.api.nvim_get_current_buf()
  local chosen = #views
  for index, view in ipairs(views) do
    chosen = view.buffer == current and index or chosen
  end
  local view = not is_new and table.remove(views, chosen) or require("lyma.view").new()
  views[#views + 1] = view
  return view
end

---The transcript of a session; that of a new session is the oldest which waits for one.
---@param event lyma.Event
---@param client_id integer
---@return lyma.View?
local function find_view(event, client_id)
  local waiting
  for _, view in ipairs(views) do
    if view.client_id == client_id then
      if view.session == event.session then return view end
      if not view.session and view.request and event.type == "turn.started" then waiting = waiting or view end
    end
  end
  return waiting
end

---Tell how the turn ended.
---@param view lyma.View
local function finish(view)
  if view.completed then view:append(render.ending(view.completed, view.route)) end
  view:mark("")
  view.completed, view.route = nil, nil
end

---What each type of event does to the transcript.
---@type table<string, fun(view: lyma.View, event: any)>
local reactions = {
  ["turn.started"] = function(view, event)
    if event.replay then view:head(event.prompt) end
    local sent = render.sent(event)
    if sent then view:append(sent) end
  end,
  ["item.started"] = function(view, event)
    local words = { text = "answering", thinking = "thinking" }
    tell_activity(words[event.item.kind] or event.item.name or event.item.kind)
    local text, prefix = render.item(event.item)
    if text then view:append(text, event.item.id, prefix) end
  end,
  ["item.delta"] = function(view, event) view:extend(event.item, event.text) end,
  ["item.completed"] = function(view, event)
    local text, prefix = render.item(event.item)
    if text then view:replace(event.item.id, text, prefix) end
  end,
  ["item.discarded"] = function(view, event)
    view:replace(event.item, ("*This part broke off and is asked again: %s*"):format(event.reason))
  end,
  route = function(view, event)
    view.route = event.class == "ok" and event or view.route
    local text = render.route(event)
    if text then
      view:append(text)
      tell_activity(event.next)
    end
  end,
  notice = function(view, event) view:append((event.level == "warning" and "**%s**" or "*%s*"):format(event.text)) end,
  ["approval.requested"] = function(view, event)
    tell_activity("waiting for you")
    require("lyma.approve").expect(event)
    view:append(("▸ **approval** %s"):format(event.title), event.hash)
  end,
  ["approval.resolved"] = function(view, event)
    view:append(("▸ **%s** %s"):format(event.state, event.hash))
    require("lyma.approve").settle(event)
  end,
  usage = function(view, event) view:mark(render.money(event.usage.costMicros)) end,
  ["turn.completed"] = function(view, event)
    M.activity.costMicros = event.usage.costMicros
    view.completed = event
    if event.replay then finish(view) end
  end,
}

---Take in an event. Types that are not known are ignored.
---@param event lyma.Event
---@param client_id integer
function M.hear(event, client_id)
  local view = find_view(event, client_id)
  local react = view and reactions[event.type]
  if view and react then
    view.session = event.session
    react(view, event)
  end
end

---The server is gone, and with it what it was doing.
---@param client_id integer
function M.lose(client_id)
  for _, view in ipairs(views) do
    if view.client_id == client_id and view.request then
      view.request = nil
      M.activity.running = M.activity.running - 1
      view:append("**The server has ended; `:LymaAsk` starts it again, `:checkhealth lyma` says more.**")
    end
  end
  tell_activity("")
end

---Send a request whose events go to `view`.
---@param view lyma.View
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param on_result? fun(result: any)
function M.send(view, client, method, params, on_result)
  params.workDoneToken = ("lyma-%d-%d"):format(vim.fn.getpid(), vim.uv.hrtime())
  view.client_id = client.id
  M.activity.running = M.activity.running + 1
  tell_activity("asking")
  local _, request = client:request(method, params, function(err, result)
    view.request = nil
    M.activity.running = M.activity.running - 1
    tell_activity("")
    finish(view)
    if err then
      view:append(("**%s**"):format(err.message))
    elseif on_result then
      on_result(result)
    end
    vim.cmd("silent! checktime")
  end)
  view.request = request
end

---@class lyma.AskOptions
---@field is_new? boolean begin a new session
---@field first? integer the first selected line, from 1
---@field last? integer
---@field model? string

---Ask; the answer streams into a transcript.
---@param prompt string
---@param options? lyma.AskOptions
function M.ask(prompt, options)
  options = options or {}
  local view = choose_view(options.is_new)
  if view.request or view.waiting then
    vim.notify("Lyma is still answering: :LymaStop ends that, :LymaAsk! begins another session.", vim.log.levels.WARN)
    return
  end
  local window = vim.b.lyma_transcript and vim.fn.win_getid(vim.fn.winnr("#")) or 0
  window = vim.api.nvim_win_is_valid(window) and window or 0
  local source = { buffer = vim.api.nvim_win_get_buf(window), first = options.first, last = options.last }
  source.cursor = vim.api.nvim_win_get_cursor(window)
  view:show()
  view:head(prompt)
  view:mark("asking")
  view.waiting = source
  require("lyma").with_client(source.buffer, function(client)
    if view.waiting ~= source then return end
    view.waiting = nil
    if not client then return view:mark("") end
    context.attach_files(client)
    edit.begin_step()
    local params = { prompt = context.blocks(prompt, source), context = context.gather(source, client) }
    params.session, params.model = view.session, options.model
    M.send(view, client, methods.ask, params, function(result) view.session = result.session end)
  end)
end

---Stop what the current transcript is doing; from anywhere else, all that is under way.
function M.stop()
  local current = vim.api.nvim_get_current_buf()
  local own = vim.tbl_filter(function(view) return view.buffer == current end, views)
  local is_idle = true
  for _, view in ipairs(#own > 0 and own or views) do
    local client = view.client_id and vim.lsp.get_client_by_id(view.client_id)
    is_idle = is_idle and not view.request and not view.waiting
    if view.request and client then
      client:cancel_request(view.request)
      view:mark("stopping")
    elseif view.waiting then
      view.waiting = nil
      view:mark("")
      view:append("*cancelled*")
    end
  end
  if is_idle then require("lyma").notify("nothing is under way here.") end
end

---The session of the transcript that was used last.
---@return string?
function M.session() return views[1] and views[#views].session or nil end

---A transcript for a session's replay, or for a run.
---@param session? string
---@param client_id integer
---@return lyma.View
function M.open(session, client_id)
  local view = choose_view(true)
  view.session, view.client_id = session, client_id
  view:show()
  return view
end

return M
