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

---@param session string
---@param client_id integer
---@return lyma.View?
local function find_view(session, client_id)
  local waiting
  for _, view in ipairs(views) do
    if view.client_id == client_id and view.session == session then
      return view
    elseif view.client_id == client_id and not view.session and view.request then
      waiting = waiting or view
    end
  end
  return waiting
end

---Tell how the turn ended.
---@param view lyma.View
local function finish(view)
  if view.completed then
    view:append(render.ending(view.completed, view.route))
  end
  view:mark("")
  view.completed, view.route = nil, nil
end

---What each type of event does to the transcript.
---@type table<string, fun(view: lyma.View, event: any)>
local reactions = {
  ["turn.started"] = function(view, event)
    if event.replay then
      view:head(event.prompt)
    end
    local sent = render.sent(event)
    if sent then
      view:append(sent)
    end
  end,
  ["item.started"] = function(view, event)
    tell_activity(
      ({ text = "answering", thinking = "thinking" })[event.item.kind] or event.item.name or event.item.kind
    )
    local text, prefix = render.item(event.item)
    if text then
      view:append(text, event.item.id, prefix)
    end
  end,
  ["item.delta"] = function(view, event)
    view:extend(event.item, event.text)
  end,
  ["item.completed"] = function(view, event)
    local text, prefix = render.item(event.item)
    if text then
      view:replace(event.item.id, text, prefix)
    end
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
  notice = function(view, event)
    view:append((event.level == "warning" and "**%s**" or "*%s*"):format(event.text))
  end,
  ["approval.requested"] = function(view, event)
    tell_activity("waiting for you")
    view:append(("▸ **approval** %s"):format(event.title), event.hash)
  end,
  ["approval.resolved"] = function(view, event)
    view:append(("▸ **%s** %s"):format(event.state, event.hash))
    require("lyma.approve").settle(event.hash)
  end,
  usage = function(view, event)
    view:mark(render.money(event.usage.costMicros))
  end,
  ["turn.completed"] = function(view, event)
    M.activity.costMicros = event.usage.costMicros
    view.completed = event
    if event.replay then
      finish(view)
    end
  end,
}

---Take in an event. Types that are not known are ignored.
---@param event lyma.Event
---@param client_id integer
function M.hear(event, client_id)
  local view = find_view(event.session, client_id)
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
      view.request, view.session = nil, nil
      M.activity.running = M.activity.running - 1
      view:append("**The server has ended; `:LymaAsk` starts it again, `:checkhealth lyma` says more.**")
    end
  end
  tell_activity("")
end

---@param buffer integer
---@return boolean
local function is_file(buffer)
  return vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
end

---Let the server see all files that are open: what is not saved stands over the disk.
---@param client vim.lsp.Client
local function attach_files(client)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and is_file(buffer) and not client.attached_buffers[buffer] then
      vim.lsp.buf_attach_client(buffer, client.id)
    end
  end
end

---@param buffer integer
---@param row integer from 0
---@param column integer in bytes
---@param client vim.lsp.Client
---@return lyma.Position
local function position(buffer, row, column, client)
  local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
  return { line = row, character = vim.str_utfindex(line, client.offset_encoding, math.min(column, #line), false) }
end

---@class lyma.Source what a prompt is about
---@field buffer integer
---@field cursor integer[] row from 1 and column in bytes
---@field first? integer the first selected line, from 1
---@field last? integer

---@param source lyma.Source
---@param client vim.lsp.Client
---@return lyma.Diagnostic[]
local function diagnostics(source, client)
  local first, last = source.first or source.cursor[1], source.last or source.cursor[1]
  local found = vim.tbl_filter(function(each)
    return each.lnum < last and (each.end_lnum or each.lnum) >= first - 1
  end, vim.diagnostic.get(source.buffer))
  return vim.tbl_map(function(each)
    local start = position(source.buffer, each.lnum, each.col, client)
    local stop = position(source.buffer, each.end_lnum or each.lnum, each.end_col or each.col, client)
    return {
      uri = vim.uri_from_bufnr(source.buffer),
      range = { start = start, ["end"] = stop },
      message = each.message,
      severity = each.severity,
      source = each.source,
    }
  end, found)
end

---What goes along with a prompt.
---@param source lyma.Source
---@param client vim.lsp.Client
---@return lyma.AskContext
function M.context(source, client)
  local context = { documents = {} }
  for buffer in pairs(client.attached_buffers) do
    table.insert(context.documents, {
      uri = vim.uri_from_bufnr(buffer),
      version = vim.lsp.util.buf_versions[buffer],
    })
  end
  if is_file(source.buffer) then
    local start = position(source.buffer, source.cursor[1] - 1, source.cursor[2], client)
    local stop = start
    if source.first then
      start, stop = { line = source.first - 1, character = 0 }, { line = source.last, character = 0 }
    end
    context.active = {
      uri = vim.uri_from_bufnr(source.buffer),
      version = vim.lsp.util.buf_versions[source.buffer],
      selections = { { start = start, ["end"] = stop } },
    }
    context.diagnostics = diagnostics(source, client)
  end
  local here = vim.fn.getcwd()
  local name = vim.api.nvim_buf_get_name(source.buffer)
  if not client.root_dir and (not context.active or vim.startswith(name, here .. "/")) then
    context.root = vim.uri_from_fname(here)
  end
  return context
end

---The prompt, with the selected lines where the server cannot see them.
---@param prompt string
---@param source lyma.Source
---@return string|lyma.Block[]
local function blocks(prompt, source)
  if not source.first or is_file(source.buffer) then
    return prompt
  end
  local lines = vim.api.nvim_buf_get_lines(source.buffer, source.first - 1, source.last, false)
  return { { type = "text", text = table.concat(lines, "\n") }, { type = "text", text = prompt } }
end

local tokens = 0

---Send a request whose events go to `view`.
---@param view lyma.View
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param on_result? fun(result: any)
function M.send(view, client, method, params, on_result)
  tokens = tokens + 1
  params.workDoneToken = ("lyma-%d-%d"):format(vim.fn.getpid(), tokens)
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
  if view.request then
    vim.notify("Lyma is still answering: :LymaStop ends that, :LymaAsk! begins another session.", vim.log.levels.WARN)
    return
  end
  local window = vim.b.lyma_transcript and vim.fn.win_getid(vim.fn.winnr("#")) or 0
  window = vim.api.nvim_win_is_valid(window) and window or 0
  local source = {
    buffer = vim.api.nvim_win_get_buf(window),
    cursor = vim.api.nvim_win_get_cursor(window),
    first = options.first,
    last = options.last,
  }
  view:show()
  view:head(prompt)
  view:mark("asking")
  view.is_waiting = true
  require("lyma").with_client(source.buffer, function(client)
    if not view.is_waiting then
      return
    end
    view.is_waiting = false
    if view.client_id ~= client.id then
      view.session = view.client_id == nil and view.session or nil
    end
    attach_files(client)
    edit.begin_step()
    local context = M.context(source, client)
    local params = { prompt = blocks(prompt, source), session = view.session, context = context, model = options.model }
    M.send(view, client, methods.ask, params, function(result)
      view.session = result.session
    end)
  end)
end

---Stop what the current transcript is doing; from anywhere else, all that is under way.
function M.stop()
  local current = vim.api.nvim_get_current_buf()
  local own = vim.tbl_filter(function(view)
    return view.buffer == current
  end, views)
  for _, view in ipairs(#own > 0 and own or views) do
    local client = view.client_id and vim.lsp.get_client_by_id(view.client_id)
    if view.request and client then
      client:cancel_request(view.request)
      view:mark("stopping")
    elseif view.is_waiting then
      view.is_waiting = false
      view:append("*cancelled*")
    end
  end
end

---The session of the transcript that was used last.
---@return string?
function M.session()
  return views[1] and views[#views].session or nil
end

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
