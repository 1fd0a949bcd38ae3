std = "luajit"
read_globals = { "vim" }
globals = { "vim.b", "vim.bo", "vim.g", "vim.wo" }
max_line_length = 120
files["lua/lyma/protocol.lua"] = { max_line_length = false }
