"""remote-destroy: infrastructure, cloud resources, remote databases, every volume of a machine."""

from __future__ import annotations

import re

from lyma_server.executor.marks import STAR, show
from lyma_server.executor.options import read_options
from lyma_server.executor.rules.base import Case, only_tries

REMOTE_COMMANDS: dict[str, str] = {
    "terraform": r"^(?:-chdir=\S+\s+)?(?:destroy|apply\s.*-destroy)\b", "tofu": r"^(?:-chdir=\S+\s+)?(?:destroy|apply\s.*-destroy)\b",
    "terragrunt": r"\bdestroy\b(?!.*-help)", "pulumi": r"^(?:destroy|down|stack\s+rm)\b", "cdk": r"^destroy\b", "cdktf": r"^destroy\b", "sst": r"^remove\b",
    "serverless": r"^remove\b", "sls": r"^remove\b", "sam": r"^delete\b", "eksctl": r"^delete\b", "kops": r"^delete\b.*--yes", "eb": r"^terminate\b", "copilot": r"\bdelete\b",
    "amplify": r"^delete\b", "aws": r"(?<!batch-)\b(?:delete|terminate|purge|deregister|destroy)-(?!(?:object|item|message|message-batch|tags)\b(?!s))\S+|\bs3\s+rb\b|\bschedule-key-deletion\b",
    "gcloud": r"\b(?:delete|purge|destroy)\b|\bprojects\s+delete\b", "gsutil": r"\brb\b",
    "bq": r"\brm\b", "az": r"\b(?:delete|purge|delete-batch)\b", "doctl": r"\b(?:delete|rm|remove|destroy)\b", "hcloud": r"\bdelete\b", "linode-cli": r"\bdelete\b|-delete\b", "scw": r"\b(?:delete|terminate)\b",
    "oci": r"\b(?:delete|terminate)\b", "ibmcloud": r"-delete\b|\bdelete\b|-rm\b", "vultr-cli": r"\bdelete\b", "openstack": r"\b(?:delete|purge)\b", "civo": r"\b(?:delete|remove)\b",
    "heroku": r"\b(?:apps:destroy|apps:delete|destroy|pg:reset|addons:destroy|pipelines:destroy|redis:reset)\b", "fly": r"\b(?:destroy|delete)\b", "flyctl": r"\b(?:destroy|delete)\b",
    "vercel": r"^(?:rm|remove|project\s+rm|projects\s+rm|domains\s+rm)\b", "netlify": r"\bsites:delete\b|\bdelete\b", "railway": r"^(?:down|delete)\b", "render": r"\bdelete\b",
    "wrangler": r"\bdelete\b", "firebase": r"\bfirestore:delete\b|\bprojects:delete\b|\bdatabase:remove\b|\bhosting:disable\b|\bfunctions:delete\b",
    "supabase": r"\bprojects\s+delete\b|\bdb\s+reset\b.*--linked|\bbranches\s+delete\b", "pscale": r"\bdelete\b", "neonctl": r"\bdelete\b", "neon": r"\bdelete\b", "turso": r"\b(?:destroy|delete)\b",
    "gh": r"^(?:repo|release|codespace|secret|variable)\s+delete\b|^api\s.*(?:-X|--method)[ =]?DELETE\b", "glab": r"^(?:repo|project)\s+delete\b", "npm": r"^unpublish\b",
    "kubectl": r"^(?:-\S+(?:\s+[^-\s]\S*)?\s+)*delete\s+(?:.*\s)?(?:ns|namespaces?|pvc?|persistentvolumeclaims?|persistentvolumes?|nodes?|crds?|customresourcedefinitions?|clusterroles?|sc|storageclass\w*)(?:[/\s]|$)"
    r"|\bdelete\b.*(?:--all\b|\s-A\b|--all-namespaces)", "oc": r"\bdelete\s+(?:project|ns|namespace|pvc?)\b|\bdelete\b.*--all\b", "helm": r"\b(?:uninstall|delete)\b.*--all\b",
    "s3cmd": r"\brb\b", "mc": r"\brb\b",
    "b2": r"\bdelete-bucket\b|\brm\b.*-r\b|bucket\s+delete", "vault": r"\b(?:secrets\s+disable|kv\s+(?:destroy|metadata\s+delete)|operator\s+seal)\b", "consul": r"\bkv\s+delete\s.*-recurse",
    "etcdctl": r"\bdel\b.*(?:--prefix|--from-key)", "kafka-topics": r"^(?!.*(?:localhost|127\.)).*--delete\b", "kafka-topics.sh": r"^(?!.*(?:localhost|127\.)).*--delete\b",
    "nomad": r"\bstop\b.*-purge|\bnamespace\s+delete\b", "velero": r"\bdelete\b", "argocd": r"\bdelete\b", "restic": r"\bforget\b.*--prune.*--keep-last\s+0|\bforget\b.*--unsafe",
    "borg": r"^delete\b", "proxmox-backup-client": r"\bforget\b", "virsh": r"\b(?:undefine\b.*--remove-all-storage|vol-delete|pool-delete)", "multipass": r"\bdelete\b.*--all|\bpurge\b",
    "vagrant": r"\bglobal-destroy\b", "packer": r"^$(?=x)",
}  # fmt: skip
"""Programs that act on other machines, with the arguments that destroy there."""


def destroys_remote(case: Case) -> str | None:
    """Infrastructure and cloud resources, deleted by their own tools."""
    pattern = REMOTE_COMMANDS.get(case.program)
    if pattern is None or only_tries(case):
        return None
    given = (value for name in _ADDED_ARGUMENTS for value in case.invocation.environment.get(name, ()))
    spellings = (case.words, *(f"{case.words} {value}" for value in given if case.program in ("terraform", "tofu")))
    return case.invocation.shown if any(re.search(pattern, words) for words in spellings) else None


_ADDED_ARGUMENTS = ("TF_CLI_ARGS", "TF_CLI_ARGS_apply")
"""Variables whose value Terraform puts after what it is given."""

BUCKET_TOOLS: dict[str, str] = {
    "aws": r"\bs3\s+rm\b.*--recursive", "gsutil": r"\brm\b.*\s-\w*[ra]|\brm\s+-\w*[ra]", "gcloud": r"\bstorage\s+rm\b.*\s(?:-r|-R|--recursive)\b",
    "s3cmd": r"\b(?:del|rm)\b.*(?:-r\b|--recursive)", "mc": r"\brm\b.*--recursive", "rclone": r"\b(?:purge|delete|rmdirs)\b", "s5cmd": r"\brm\b",
    "az": r"\bstorage\s+blob\s+delete-batch\b", "b2": r"\brm\b.*-r",
}  # fmt: skip
_BUCKET = re.compile(r"^(?:\w+://[^/]+|[\w-]+:[^/]*|[\w-]+/[^/]+)/?\**$")


def empties_bucket(case: Case) -> str | None:
    """A whole bucket of an object store, not a prefix in it."""
    pattern = BUCKET_TOOLS.get(case.program)
    if pattern is None or only_tries(case) or not re.search(pattern, show(case.words)):
        return None
    return case.invocation.shown if any(_BUCKET.match(show(word)) for word in case.arguments) else None


_LOCAL = re.compile(
    r"(?i)^(?:localhost|127\.\d+\.\d+\.\d+|::1|\[::1\]|0\.0\.0\.0|/.*|db|postgres|mysql|redis|mongo|mariadb|host\.docker\.internal|)$"
)
_DESTROYS = re.compile(
    r"(?i)\bdrop\s+(?:database|schema|table|keyspace|user|role|tablespace|collection)\b|\btruncate\b|\bdelete\s+from\s+\S+\s*(?:;|$|['\"])|dropDatabase\s*\(|\.drop\s*\("
    r"|deleteMany\s*\(\s*\{\s*\}|\bflush(?:all|db)\b|^\s*drop\s"
)
CLIENTS: dict[str, tuple[str, ...]] = {
    "psql": ("-h", "--host"), "mysql": ("-h", "--host"), "mariadb": ("-h", "--host"), "redis-cli": ("-h", "-u"), "mongosh": ("--host",), "mongo": ("--host",),
    "dropdb": ("-h", "--host"), "dropuser": ("-h", "--host"), "mysqladmin": ("-h", "--host"), "sqlcmd": ("-S",), "cqlsh": (), "clickhouse-client": ("--host", "-h"), "pg_restore": ("-h", "--host"),
    "influx": ("--host",), "cockroach": ("--host", "--url"), "usql": (), "pgcli": ("-h",), "mycli": ("-h",), "valkey-cli": ("-h",), "snowsql": (), "bsondump": (),
}  # fmt: skip
_HOST_VARIABLES = {"psql": "PGHOST", "dropdb": "PGHOST", "mysql": "MYSQL_HOST"}
_URL = re.compile(r"^[\w+]+://(?:[^@/\s]*@)?(?P<host>\[[^\]]*\]|[^:/?\s]*)")


def destroys_remote_database(case: Case) -> str | None:
    """A statement that drops or empties something on a database server elsewhere."""
    hosts = CLIENTS.get(case.program)
    if hosts is None or not _is_remote(case, hosts):
        return None
    drops = case.program in ("dropdb", "dropuser") or re.search(
        r"\bdrop\b|--clean", case.words if case.program in ("mysqladmin", "pg_restore") else ""
    )
    texts = (case.words, *case.invocation.stdin)
    return case.invocation.shown if drops or any(_DESTROYS.search(text) for text in texts) else None


def _is_remote(case: Case, names: tuple[str, ...]) -> bool:
    values = read_options(
        case.arguments, (*names, "-c", "-e", "-U", "-d", "-p", "-P", "-u", "-f", "--eval", "-n", "-a")
    ).all_values(*names)
    variable = _HOST_VARIABLES.get(case.program)
    hosts = [value.split(",")[0] for value in values] + list(
        case.invocation.environment.get(variable, ()) if variable else ()
    )
    for word in case.arguments:
        if match := _URL.match(word):
            hosts.append(match.group("host"))
        if match := re.search(r"\bhost=(\S+)", word):
            hosts.append(match.group(1))
    hosts = [match.group("host") if (match := _URL.match(host)) else host for host in hosts]
    return (
        any(not _LOCAL.match(host.partition(":")[0] if host.count(":") == 1 else host) for host in hosts)
        or case.program == "snowsql"
    )


_RESETS = re.compile(
    r"\bdb:(?:drop|reset|purge|schema:load|truncate_all|wipe)\b|\bmigrate(?::|\s+)(?:fresh|reset)\b|\bdb\s+push\b.*--force-reset|\becto\.(?:drop|reset)\b|\bflush\b.*--no-?input"
)


def resets_production(case: Case) -> str | None:
    """A framework's database task with a production environment."""
    destroys = _RESETS.search(case.words)
    if not destroys:
        return None
    variables = case.invocation.environment
    production = any(
        "prod" in value
        for name in ("RAILS_ENV", "RACK_ENV", "NODE_ENV", "APP_ENV", "MIX_ENV", "DJANGO_ENV", "FLASK_ENV")
        for value in variables.get(name, ())
    )
    production = production or bool(re.search(r"(?:RAILS_ENV|APP_ENV|--env|--environment)[= ]prod", case.words))
    remote = any(
        (match := _URL.match(value)) and not _LOCAL.match(match.group("host"))
        for name in ("DATABASE_URL", "MONGO_URL", "REDIS_URL")
        for value in variables.get(name, ())
    )
    return case.invocation.shown if production or remote or case.program == "heroku" else None


ENGINES = frozenset({"docker", "podman", "nerdctl", "docker-compose"})


def prunes_volumes(case: Case) -> str | None:
    """Every volume of the machine."""
    if case.program not in ENGINES or only_tries(case):
        return None
    words = case.words
    pruned = re.search(r"\bvolume\s+prune\b", words) or re.search(
        r"\bsystem\s+prune\b.*--volumes\b|\bsystem\s+reset\b", words
    )
    removed = re.search(rf"\bvolume\s+(?:rm|remove)\b.*{STAR}", words)
    return case.invocation.shown if pruned or removed else None


_CLOUD_HOSTS = re.compile(
    r"https://(?:api\.(?:github\.com/(?:repos|orgs)|digitalocean\.com|heroku\.com|cloudflare\.com|hetzner\.cloud|linode\.com|vultr\.com|vercel\.com|netlify\.com|machines\.dev|fly\.io|supabase\.com|render\.com)"
    r"|management\.azure\.com|[\w.-]*\.googleapis\.com|[\w.-]*\.amazonaws\.com|gitlab\.com/api)"
)


REQUESTERS = frozenset({"curl", "http", "https", "wget", "xh"})


def deletes_by_request(case: Case) -> str | None:
    """A DELETE request to the control plane of a cloud."""
    if case.program not in REQUESTERS:
        return None
    deletes = re.search(r"(?:-X|--request|--method)[ =]?DELETE\b|^(?:-\S+\s+)*DELETE\s", case.words)
    search = re.search(r"https?://(?!localhost|127\.)[^/\s:]+:9200/", case.words)
    return case.invocation.shown if deletes and (search or _CLOUD_HOSTS.search(case.words)) else None
