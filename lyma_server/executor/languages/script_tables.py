"""Names and shapes of calls in JavaScript, Perl, Ruby, PHP, Lua and their like, as data."""

from __future__ import annotations

import re

HOME_EXPRESSION = re.compile(
    r"(?:require\(['\"](?:node:)?os['\"]\)\.|\bos\.)?homedir\(\)|process\.env\.HOME\b|process\.env\[['\"]HOME['\"]\]|ENV\[['\"]HOME['\"]\]"
    r"|ENV\.fetch\(['\"]HOME['\"]\)|\$ENV\{['\"]?HOME['\"]?\}|Dir\.home|(?:os\.)?getenv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]"
    r"|Deno\.env\.get\(['\"]HOME['\"]\)|\$env\(HOME\)|\$::env\(HOME\)|(?:File|path)\.expand_path\(['\"]~['\"]\)|homedir\b(?!\()|path\.expand\(['\"]~['\"]\)"
)
FOLDER_EXPRESSION = re.compile(r"process\.cwd\(\)|Dir\.pwd|\bgetcwd\(\)|\b__dirname\b|Deno\.cwd\(\)")
TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/|(?<![:'\"\\])//[^\n]*)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<back>`(?:[^`\\]|\\.)*`)"
    r"|(?P<quote>(?:qx|%x|qq|q|%q|%Q|%w|qw)\s*(?:\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]|/[^/]*/|\|[^|]*\|))"
    r"|(?P<name>[$@%]?[A-Za-z_][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*[!?]?)*)|(?P<number>0o?[0-7]+|\d+)|(?P<other>\S)|(?P<space>\s+)",
    re.DOTALL,
)
LISPS = frozenset({"emacs", "guile", "sbcl", "clisp", "racket"})
LISP_TOKEN = re.compile(
    r"(?P<comment>;[^\n]*)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<name>[A-Za-z_*][\w*!?/+-]*)|(?P<number>\d+)|(?P<other>\S)|(?P<space>\s+)"
)
RUNNERS = frozenset(
    {"system", "exec", "execSync", "spawn", "spawnSync", "execFile", "execFileSync", "popen", "popen2", "popen2e", "popen3", "capture2",
     "capture2e", "capture3", "shell_exec", "passthru", "proc_open", "pcntl_exec", "execute", "run", "pipeline", "getoutput", "sh",
     "shell-command", "call-process", "shell-command-to-string", "start-process", "fork_exec", "Command", "rmtree_cmd", "shell", "execvp",
     "callCommand", "callProcess", "spawnCommand", "readProcess", "execv", "execl", "execlp", "system2", "exec_cmd", "execa", "command", "cmd"}
)  # fmt: skip
REMOVERS = frozenset(
    {"rmSync", "rm", "rmdirSync", "rmdir", "unlinkSync", "unlink", "rimraf", "rimrafSync", "removeSync", "remove", "emptyDirSync", "emptyDir",
     "rm_rf", "rm_r", "rm_f", "remove_dir", "remove_entry", "remove_entry_secure", "rmtree", "remove_tree", "remove_dir_all", "deleteFile",
     "delete-directory", "delete-file", "delete_tree", "unlink_recursive", "deltree", "rmtree_all", "trash", "del"}
)  # fmt: skip
LISTERS = frozenset(
    {
        "glob",
        "children",
        "entries",
        "each_child",
        "readdirSync",
        "readdir",
        "find",
        "finddepth",
        "opendir",
        "scandir",
        "walk",
        "list",
        "bsd_glob",
        "Dir",
    }
)
SPELLED_OUT = {
    "perl": ((re.compile(r"<([~/][^<>\s]*)>"), r'glob("\1")'),),
    "php": ((re.compile(r"\barray_(?:map|walk)\s*\(\s*['\"](\w+)['\"]\s*,"), r"\1("),),
}
"""Shapes of one language that are calls by another name."""
DELETING_METHOD = re.compile(
    r"^(?:File|Dir|FileUtils|Pathname|fs|Files?|Storage|FileSystem)(?:\.|::|->)(?:delete|deleteDir|deleteTree|unlink)$"
)
WRITERS = frozenset({"writeFileSync", "writeFile", "appendFileSync", "appendFile", "createWriteStream", "file_put_contents", "binwrite",
                     "write", "outputFile", "outputFileSync", "truncateSync", "openSync"})  # fmt: skip
READERS = frozenset({"readFileSync", "readFile", "createReadStream", "file_get_contents", "readfile", "slurp", "binread", "readlines",
                    "readTextFile", "readTextFileSync", "read", "fopen", "open"})  # fmt: skip
MOVERS = frozenset({"renameSync", "rename", "mv", "move", "moveSync"})
MODE_CHANGERS = frozenset({"chmodSync", "chmod", "chmod_R", "chown_R", "chownSync", "lchown"})
COPIERS = frozenset({"copyFileSync", "copyFile", "cpSync", "cp", "cp_r", "copy"})
LINKERS = frozenset({"symlinkSync", "symlink", "ln_s", "ln_sf"})
FORK_LOOP = re.compile(
    r"\bfork\b[\s(){};]*(?:\bwhile\b|\buntil\b)|\b(?:while|until|loop|for)\b[^;\n]{0,30}[\s({]*(?:;;[\s)]*)?[\s{(]*\b(?:pcntl_)?fork\b|while\s*\(\s*(?:1|true)\s*\)[^}]{0,80}\b(?:spawn|fork|exec)\w*\s*\("
)
SOCKET = re.compile(
    r"TCPSocket|IO::Socket|INET\b|net\.(?:connect|Socket|createConnection)|fsockopen|socket\.connect|socket\s*\(|require\s*\(?\s*['\"]socket|:connect\s*\(|stream_socket_client|Socket\.tcp"
)
TAKES_SOCKET = re.compile(r"STDIN\s*->\s*fdopen|open\s*\(?\s*STDIN\s*,\s*['\"]<?[<>+]*&|\$stdin\.reopen")
RUNS_LINE = re.compile(r"\b(?:system|exec|qx)\b\s*[({]?\s*\$_")
"""Standard input becomes the socket, and every line of it is run."""

ALIASED = re.compile(r"\b(\w+)\s*(?::|\bas\b)\s*([A-Za-z_$][\w$]*)\s*[,}]")
"""`{execSync: run}` and `{rmSync as gone}`: a function under another name."""

SHELL_START = re.compile(r"^\s*(?:/usr)?(?:/bin/)?(?:ba|z|da|k)?sh\b(?!\s+-c\b|\S)")
EVALUATES_FETCHED = re.compile(
    r"\.then\(\s*(?:eval|Function)\b|\b(?:eval|Function|instance_eval|load|loadstring|assert)\b[^;\n]*(?:https?://|\bfetch\s*\(|https?\.get|URI\.(?:open|parse)|open-uri|LWP|curl|file_get_contents\(['\"]http|Net::HTTP|axios)"
)
EVALUATES = re.compile(r"\beval\s*[(]|\bnew Function\s*\(|\binstance_eval\b|\bload(?:string)?\s*\(|\.then\(\s*eval\b")
FETCHES = re.compile(
    r"\bfetch\s*\(|\bhttps?\b['\"]?\)?\.(?:get|request)|\baxios\b|URI\.open|Net::HTTP|LWP::|HTTP::Tiny|file_get_contents\(['\"]http|curl_exec|XMLHttpRequest"
)
SENDS = re.compile(FETCHES.pattern + r"|net\.connect|TCPSocket|IO::Socket|fsockopen|sendBeacon|dns\.")
WHOLE_ENVIRONMENT = re.compile(
    r"process\.env\b(?![.\[])|\bENV\.(?:to_h|inspect|to_a|map|each)\b|%ENV\b|\bgetenv\(\s*\)|\$_ENV\b(?!\[)|Deno\.env\.toObject"
)
