#!/bin/sh
# The story of this example on a real API server; `make demo` runs it. It needs go, git and
# make, listens only on loopback, and leaves nothing behind.
#
#   --forge                 run it with a forge: a Gitea that the demo starts, where commits get their statuses
#   --crossplane            run it with a real Crossplane, which makes the CRDs
#   CORPUS=package.tar.gz   run it with a real provider package: crossplane.yaml and crds/ (or their directory)
#   BIN=directory           the directory of headgate and the other programs, instead of bin/
#   KEEP=1                  keep the API server at the end, until Enter is pressed
#   KUBEBUILDER_ASSETS=directory   use its etcd and kube-apiserver, instead of building an API server
#
# What is missing in bin/ is built in the background, while the first scenes, which need no server, play.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
forge='' crossplane='' assets=${KUBEBUILDER_ASSETS:-}
for argument; do
	case $argument in
	--forge) forge=yes ;;
	--crossplane) crossplane=yes ;;
	*) echo "usage: demo.sh [--forge] [--crossplane]" >&2 && exit 2 ;;
	esac
done
corpus=${CORPUS:-}
case $corpus in '' | /*) ;; *) corpus=$PWD/$corpus ;; esac
case $assets in '' | /*) ;; *) assets=$PWD/$assets ;; esac
for program in etcd kube-apiserver; do
	[ -z "$assets" ] || [ -x "$assets/$program" ] || { echo "demo.sh: KUBEBUILDER_ASSETS has no $program: $assets" >&2 && exit 2; }
done

bold='' dim='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$(printf '\033[1m') dim=$(printf '\033[2m') red=$(printf '\033[31m') plain=$(printf '\033[0m')
fi

scenes=0
scene() {
	scenes=$((scenes + 1))
	printf '\n\n%s%s. %s%s\n' "$bold" "$scenes" "$1" "$plain"
}

# say prints an explanation of the next step from standard input.
say() {
	echo
	sed 's/^\(.\)/  \1/'
}

fail() {
	printf '\n%sdemo: %s%s\n' "$red" "$1" "$plain" >&2
	exit 1
}

# run CODES COMMAND… shows and runs a command. It fails unless the exit code is one of CODES.
run() {
	codes=$1
	shift
	printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"
	code=0
	"$@" || code=$?
	[ "$code" -eq 0 ] || printf '%s(exit code %s)%s\n' "$dim" "$code" "$plain"
	case " $codes " in
	*" $code "*) ;;
	*) fail "'$*' ended with exit code $code, not $codes" ;;
	esac
}

# ---- the stage ----

work=$(mktemp -d "${TMPDIR:-/tmp}/headgate.XXXXXX")
server='' etcd='' controllers='' gitea='' loop='' build=''

# end ends a program that the demo started: with SIGTERM, and after a while with SIGKILL.
end() {
	[ -n "$1" ] || return 0
	kill "$1" 2>/dev/null || :
	patience=15
	while [ "$patience" -gt 0 ] && kill -0 "$1" 2>/dev/null; do
		sleep 1
		patience=$((patience - 1))
	done
	kill -9 "$1" 2>/dev/null || :
	wait "$1" 2>/dev/null || :
}

# family prints a process and its descendants.
family() {
	echo "$1"
	for child in $(ps -A -o ppid= -o pid= 2>/dev/null | awk -v of="$1" '$1 == of { print $2 }'); do
		family "$child"
	done
}

# cleanup ends all servers and removes all files when the script ends for any reason.
cleanup() {
	status=$?
	trap '' INT TERM HUP
	# shellcheck disable=SC2046 # a list of processes: make, go and the compilers
	[ -z "$build" ] || kill $(family "$build") 2>/dev/null || :
	end "$build"
	end "$loop"
	end "$gitea"
	end "$controllers"
	end "$server"
	end "$etcd"
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# The user's own settings must not change the story.
# shellcheck disable=SC2046 # a list of names
unset $(git rev-parse --local-env-vars) $(env | sed -n 's/^\(HEADGATE_[A-Z0-9_]*\)=.*/\1/p')
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Demo GIT_AUTHOR_EMAIL=demo@example.org GIT_COMMITTER_NAME=Demo GIT_COMMITTER_EMAIL=demo@example.org
export KUBECONFIG="$work/cluster/kubeconfig" HEADGATE_CACHE_DIR="$work/cache"
PATH=${BIN:-$top/bin}:$top/bin:$PATH

repository() {
	git -C "$1" init -q
	git -C "$1" symbolic-ref HEAD refs/heads/main
	commit "$1" "$2"
}

commit() {
	git -C "$1" add -A
	git -C "$1" commit -q -m "$2"
}

# build_in_background starts make for the programs that are missing.
build_in_background() {
	programs=''
	for program in by-hand $([ -n "$assets" ] || echo controlplane) $([ -z "$forge" ] || echo gitea) $([ -z "$crossplane" ] || echo crossplane); do
		[ -n "${BIN:-}" ] && [ -x "$BIN/$program" ] || programs="$programs bin/$program"
	done
	# shellcheck disable=SC2086 # a list of programs
	[ -z "$programs" ] || make -C "$top" -s -q $programs 2>/dev/null && return
	began=$(date +%s)
	case $programs in
	*controlplane* | *gitea* | *crossplane*) cost='about 10 CPU minutes, once' ;;
	*) cost='a minute, once' ;;
	esac
	# shellcheck disable=SC2086
	GOFLAGS="${GOFLAGS:-} -v" nice make -C "$top" -s $programs >"$work/build.log" 2>&1 &
	build=$!
	say <<EOF
What the later scenes need is built in the background: $cost. The first scenes need no server.
EOF
}

# built waits for the programs that are built in the background, and shows how far they are.
built() {
	[ -n "$build" ] || return 0
	ticks=0
	while kill -0 "$build" 2>/dev/null; do
		packages=$(grep -c '^[^ ]*$' "$work/build.log" || :) # go build -v prints one a line
		now="building what this scene needs ($cost): $(($(date +%s) - began)) s so far, $packages packages compiled"
		if [ -t 1 ]; then
			printf '\r  %s' "$now"
		elif [ $((ticks % 30)) -eq 0 ]; then
			printf '  %s\n' "$now"
		fi
		ticks=$((ticks + 1))
		sleep 1
	done
	code=0
	wait "$build" || code=$?
	build=''
	[ ! -t 1 ] || echo
	[ "$code" -eq 0 ] || fail "cannot build $programs: $(tail -n 20 "$work/build.log")"
}

# start_server starts the API server that $KUBECONFIG names.
start_server() {
	built
	if [ -n "$assets" ]; then start_assets; else start_controlplane; fi
}

start_controlplane() {
	controlplane --dir "$work/cluster" --ephemeral >/dev/null 2>"$work/server.log" &
	server=$!
	patience=120
	while [ ! -s "$KUBECONFIG" ]; do
		kill -0 "$server" 2>/dev/null || fail "the control plane has ended: $(cat "$work/server.log")"
		[ "$patience" -gt 0 ] || fail "the control plane is not ready after two minutes"
		sleep 1
		patience=$((patience - 1))
	done
}

# start_assets starts the etcd and the kube-apiserver of $KUBEBUILDER_ASSETS, as envtest does.
start_assets() {
	local_address=127.0.0.1
	mkdir "$work/cluster"
	by-hand key >"$work/cluster/accounts.key"
	token=$(by-hand token)
	echo "$token,admin,admin,system:masters" >"$work/cluster/tokens.csv"
	clients=http://$local_address:$(by-hand port) peers=http://$local_address:$(by-hand port) port=$(by-hand port)
	"$assets/etcd" --data-dir "$work/cluster/etcd" --unsafe-no-fsync --listen-client-urls "$clients" --advertise-client-urls "$clients" \
		--listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers" >"$work/etcd.log" 2>&1 &
	etcd=$!
	"$assets/kube-apiserver" --etcd-servers "$clients" --bind-address $local_address --advertise-address $local_address --secure-port "$port" \
		--cert-dir "$work/cluster" --endpoint-reconciler-type none --service-cluster-ip-range 10.0.0.0/24 \
		--token-auth-file "$work/cluster/tokens.csv" --authorization-mode RBAC --disable-admission-plugins ServiceAccount \
		--service-account-issuer https://kubernetes.default.svc --service-account-key-file "$work/cluster/accounts.key" \
		--service-account-signing-key-file "$work/cluster/accounts.key" >"$work/server.log" 2>&1 &
	server=$!
	cat >"$KUBECONFIG" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: demo, cluster: {server: "https://$local_address:$port", certificate-authority: "$work/cluster/apiserver.crt"}}]
users: [{name: admin, user: {token: "$token"}}]
contexts: [{name: demo, context: {cluster: demo, user: admin}}]
current-context: demo
EOF
	patience=120
	until by-hand ready 2>/dev/null; do
		kill -0 "$etcd" 2>/dev/null || fail "etcd has ended: $(tail -n 20 "$work/etcd.log")"
		kill -0 "$server" 2>/dev/null || fail "kube-apiserver has ended: $(tail -n 20 "$work/server.log")"
		[ "$patience" -gt 0 ] || fail "kube-apiserver is not ready after two minutes"
		sleep 1
		patience=$((patience - 1))
	done
}

# start_crossplane starts Crossplane's core. No policy activates anything, as with provider.defaultActivations={} in its chart.
start_crossplane() {
	module=$(go -C "$top/fixtures/server/crossplane" list -m -f '{{.Dir}}' github.com/crossplane/crossplane/v2)
	export POD_NAMESPACE=crossplane-system
	mkdir "$work/crossplane"
	by-hand crossplane "$work/crossplane" "$module/cluster/crds" 2>"$work/crossplane.log" || fail "crossplane: $(tail -n 20 "$work/crossplane.log")"
	crossplane core start --package-runtime=External --xpkg-cache-dir "$work/crossplane" --xfn-cache-dir "$work/crossplane" \
		--metrics-port 0 --health-probe-port 0 --enable-webhooks=false \
		--tls-client-certs-dir "$work/crossplane/client" --tls-client-secret-name client \
		--tls-server-certs-dir "$work/crossplane/server" --tls-server-secret-name server >"$work/crossplane.log" 2>&1 &
	controllers=$!
}

# start_forge starts a Gitea with one user, and pushes the repository 'platform', which creates
# it there.
start_forge() {
	mkdir "$work/forge"
	forge=http://127.0.0.1:$(by-hand port)
	unsafe=''
	[ "$(id -u)" -ne 0 ] || unsafe='I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true'
	cat >"$work/forge/app.ini" <<EOF
RUN_MODE = prod
WORK_PATH = $work/forge
$unsafe
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${forge##*:}
ROOT_URL = $forge/
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = $work/forge/gitea.db
[repository]
ENABLE_PUSH_CREATE_USER = true
DEFAULT_PUSH_CREATE_PRIVATE = false
[security]
INSTALL_LOCK = true
[session]
PROVIDER = memory
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[log]
MODE = console
LEVEL = Warn
[actions]
ENABLED = false
[cron]
ENABLED = false
EOF
	# Gitea gets only the environment that it needs.
	cat >"$work/forge/gitea" <<EOF
exec env -i "PATH=\$PATH" "HOME=$work/forge" "GITEA_WORK_DIR=$work/forge" "TMPDIR=$work" "GOMODCACHE=$(go env GOMODCACHE)" \\
	gitea "\$@" --config "$work/forge/app.ini"
EOF
	sh "$work/forge/gitea" migrate >"$work/forge.log" 2>&1 || fail "gitea: $(cat "$work/forge.log")"
	sh "$work/forge/gitea" admin user create --username demo --email demo@example.org --random-password --admin \
		--must-change-password=false --access-token --access-token-scopes write:repository >"$work/forge.log" 2>&1 || fail "gitea: $(cat "$work/forge.log")"
	HEADGATE_FORGE_TOKEN=$(sed -n 's/^Access token was successfully created\.\.\. *//p' "$work/forge.log")
	export HEADGATE_FORGE_TOKEN
	sh "$work/forge/gitea" web >"$work/forge.log" 2>&1 &
	gitea=$!
	git -C platform remote add forge "http://demo:$HEADGATE_FORGE_TOKEN@${forge#http://}/demo/platform.git"
	patience=60
	until git -C platform push -q forge main 2>"$work/push.log"; do
		kill -0 "$gitea" 2>/dev/null || fail "gitea has ended: $(cat "$work/forge.log")"
		[ "$patience" -gt 0 ] || fail "cannot push to gitea: $(cat "$work/push.log")"
		sleep 1
		patience=$((patience - 1))
	done
}

# start_loop shows and starts a loop over sync.yaml.
start_loop() {
	printf '\n%s$ headgate run -f sync.yaml &%s\n' "$bold" "$plain"
	headgate run -f sync.yaml >/dev/null 2>"$work/loop.log" &
	loop=$!
}

# await waits until the loop's log matches a pattern.
await() {
	patience=60
	until grep -q "$1" "$work/loop.log"; do
		kill -0 "$loop" 2>/dev/null || fail "the loop has ended: $(cat "$work/loop.log")"
		[ "$patience" -gt 0 ] || fail "the loop never logged $1: $(cat "$work/loop.log")"
		sleep 1
		patience=$((patience - 1))
	done
}

# ---- the props: two repositories, and the names in the story ----

cd "$work"
mkdir platform app-team

# quickstart uses the provider and the policies of this directory.
quickstart() {
	cp -R "$here/repository/." platform
	cp -R "$here/demo/app-team/." app-team
	wider=$here/demo/policy-wider.yaml
	name=buckets.storage.tidewater.m.example.org
	file=provider-tidewater/crds/storage.tidewater.m.example.org_buckets.yaml
}

# real uses a real package and chooses the kinds itself: three kinds first, and a whole group later.
real() {
	mkdir -p platform/package platform/policies
	if [ -d "$corpus" ]; then
		cp -R "$corpus/crossplane.yaml" "$corpus/crds" platform/package
	else
		tar -xzf "$corpus" -C platform/package crossplane.yaml crds
	fi || fail "$corpus: a provider package holds crossplane.yaml and crds/"
	# scope, name and file of every managed kind, namespaced kinds first
	(cd platform && awk '
		function flush() { if (kind !~ /^(Cluster)?ProviderConfig(Usage)?$/) print scope, name, file }
		FNR == 1 { if (file) flush(); file = FILENAME; name = kind = scope = "" }
		/^  name: / && !name { name = $2 }
		/^    kind: / && !kind { kind = $2 }
		/^  scope: / { scope = $2 }
		END { flush() }' package/crds/*.yaml) | sort -k1,1r -k2 >managed
	count=$(wc -l <managed | tr -d ' ')
	[ "$count" -gt 1 ] || fail "$corpus: the story needs a package with two managed kinds, one to keep and one to remove"
	few=$((count > 3 ? 3 : count - 1))

	policy $(head -n "$few" managed | cut -d ' ' -f 2) >platform/policies/few.yaml
	next=$(sed -n "$((few + 1))p" managed | cut -d ' ' -f 2)
	wider=$work/wider.yaml
	policy $(head -n "$few" managed | cut -d ' ' -f 2) "*.${next#*.}" >"$wider"

	name=$(head -n 1 managed | cut -d ' ' -f 2)
	file=$(head -n 1 managed | cut -d ' ' -f 3)
	cp "$here/demo/app-team/namespace.yaml" app-team
	(cd "$top" && go run ./examples/quickstart/sample "$work/platform/$file") >app-team/resource.yaml
	export HEADGATE_CONVERSION=none
}

policy() {
	printf 'apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata:\n  name: few\nspec:\n  activate:\n'
	printf '  - "%s"\n' "$@"
}

# sync_file prints the Sync for the loop.
sync_file() {
	cat <<EOF
apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata:
  name: default
spec:
  source:
    repo: $1
    ref: main
    interval: 1s
EOF
	[ -z "$corpus" ] || printf '  conversion:\n    strategy: None\n'
	[ -z "$forge" ] || printf '  clusterName: demo\n  statuses:\n    forge: Gitea\n'
}

if [ -n "$corpus" ]; then real; else quickstart; fi
maker='(The policy itself is applied
only where Crossplane runs. Here, Headgate makes the CRDs.)'
if [ -n "$crossplane" ]; then
	maker='Headgate applies the definitions and
the policy, and Crossplane makes the CRDs.'
fi
policy_file=$(cd platform && echo policies/*.yaml)
resource=$(cd app-team && ls | grep -v namespace)
repository platform 'a provider, and a policy for a few of its kinds'
repository app-team 'what the application team needs'

# ---- the story ----

say <<EOF
This is Headgate on a real Kubernetes API server that the demo started. You will see what a
commit activates, review a change before it is merged, and watch Headgate refuse to destroy
something that is in use. The demo shows every command as you would type it.
EOF
[ -z "$corpus" ] || say <<EOF
(HEADGATE_CONVERSION=$HEADGATE_CONVERSION is set for all commands, because no provider runs here that could convert versions.)
EOF

build_in_background

scene 'What a commit activates'
say <<EOF
The Git repository 'platform' holds a provider package of $(ls platform/*/crds | wc -l | tr -d ' ') CRDs and one policy. Each CRD
costs the API server memory, and every client time, used or not. This is the policy:

$(grep -v '^#' "platform/$policy_file")

Headgate explains why a kind is active: the policy, the pattern, the line. It reads the
commit, and asks no cluster.
EOF
run 0 headgate why "$name" --repo platform

scene 'A wider policy, before it is merged'
say <<EOF
A colleague proposes a wider policy on a branch. Crossplane never deactivates a kind, so
look at the effect of the merge first. Headgate compares the two commits: it asks no
cluster and needs no credentials.
EOF
git -C platform checkout -q -b wider
cp "$wider" "platform/$policy_file"
commit platform 'policies: more kinds'
git -C platform checkout -q main
run '0 1' headgate diff main wider --repo platform
say <<EOF
The exit code is 1, as with diff, because something would change. CI can use it.
EOF

scene 'The comment on its pull request'
say <<EOF
In CI, the same comparison becomes one comment and one status. This is the comment; the forge
folds what is below 'Item by item'.
EOF
run '0 1' headgate preview --base main --head wider --repo platform -o markdown

scene 'An empty cluster'
start_server
say <<EOF
An API server and etcd, only on loopback. It has no provider, and Headgate
has applied nothing, so status exits with 1.
EOF
if [ -n "$crossplane" ]; then
	start_crossplane
	say <<EOF
Crossplane runs in it, without the policy that its chart would create.
EOF
fi
run 1 headgate status

scene 'The first pass'
say <<EOF
One pass of Headgate renders and applies only the CRDs that the policy activates, and the
provider's configuration kinds, which are always needed.
EOF
run 0 headgate sync --repo platform --ref main

scene 'What is served now'
say <<EOF
Headgate keeps an inventory of the objects that it applied. So it can report at any time
whether they still exist, and whether another writer changed them.
EOF
run 0 headgate status --full
say <<EOF
With --live, the explanation includes what the cluster has.
EOF
run 0 headgate why "$name" --repo platform --live

scene 'Merged'
say <<EOF
The next pass does what the review showed, and nothing else. $maker
EOF
git -C platform merge -q --ff-only wider
run 0 headgate sync --repo platform --ref main

if [ -n "$forge" ]; then
	scene 'A forge, and a loop that follows it'
	start_forge
	sync_file "$forge/demo/platform.git" >sync.yaml
	say <<EOF
The repository is on a forge now, a real Gitea that the demo started. A loop keeps the
cluster in line with its branch and reports on every commit. This is its configuration:

$(cat sync.yaml)
EOF
	start_loop
	await '"msg":"pass"'
	say <<EOF
A user pushes. The commit is pending as soon as the loop sees it. When it is applied, it gets
two verdicts: on what it activates, and on what other writers changed in the cluster since.
EOF
	printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: about, namespace: default}\ndata: {owner: platform team}\n' >platform/about.yaml
	commit platform 'say whose it is'
	run 0 git -C platform push -q forge main
	await '"msg":"pass".*"because":"commit"'
	run 0 by-hand statuses "$forge/demo/platform.git" "$(git -C platform rev-parse main)" 'no drift'
fi

scene 'A user changes the cluster by hand'
if [ -z "$forge" ]; then
	sync_file platform >sync.yaml
	say <<EOF
So far you ran every pass by hand. A loop does this by itself: it polls for commits, and
watches the objects that it applied. This is its configuration:

$(cat sync.yaml)
EOF
	start_loop
	await '"msg":"pass"'
fi
if [ -n "$crossplane" ]; then
	say <<EOF
Now a user edits the policy in the cluster. (by-hand replaces kubectl edit, so that the demo
needs no kubectl.)
EOF
	run 0 by-hand edit policy "$(sed -n 's/^  name: //p' "platform/$policy_file")" '{"spec":{"activate":["nothing.example.org"]}}'
else
	say <<EOF
Now a user edits the CRD in the cluster, so that 'kubectl get managed' would no longer list
these objects. (by-hand replaces kubectl edit, so that the demo needs no kubectl.)
EOF
	run 0 by-hand edit crd "$name" '{"spec":{"names":{"categories":["edited"]}}}'
fi
await '"drift":"1 corrected"'
say <<EOF
The watch noticed the edit and the loop reverted it, long before the next pass was due. Its
log names the writer, the field, and both values. Shortened:

$(sed -n '/"msg":"drift"/ { s/.*"by":\["\(.*\)"\],"path":"\(.*\)","is":"\(.*\)","wanted":"\(.*\)"}$/drift by \1: \2: is \3, wanted \4/; s/is ,/is not there,/; s/\\"/"/g; p; }
	/"drift":"1 corrected"/ s/.*"\(activation":.*\),"created".*/pass: "\1/p' "$work/loop.log")
EOF
if [ -n "$forge" ]; then
	say <<EOF
The commit shows it too:
EOF
	run 0 by-hand statuses "$forge/demo/platform.git" "$(git -C platform rev-parse main)" '1 corrected'
fi
run 0 headgate status
end "$loop"
loop=''

scene 'An application team uses it'
say <<EOF
The team has its own repository, with this object:

$(grep -v '^#' "app-team/$resource")

Its sync has its own name too: neither sync touches the objects of the other.
EOF
run 0 headgate sync --repo app-team --name app-team

scene 'A commit removes the definition'
say <<EOF
Now $name disappears from Git, by accident or by
a provider upgrade. Deleting its CRD would also delete every object of that kind, and the
cloud resources behind them. Other tools prune everything that left Git.
EOF
git -C platform rm -q "$file"
commit platform 'drop a definition'
run 3 headgate sync --repo platform --ref main
say <<EOF
Headgate holds the prune, with the reason and the way out. Exit code 3 means that a user has
to decide. The object still exists, and its kind is still served. The earlier branch shows why:
EOF
run 0 headgate status --name app-team --full
run 0 headgate why "$name" --repo platform --ref wider --live

scene 'On purpose, then'
say <<EOF
The way out is to remove the object of the kind first. The team deletes it in Git, and
confirms with --instances prune that the cloud resource may go too:
EOF
git -C app-team rm -q "$resource"
commit app-team 'not needed any more'
run 0 headgate sync --repo app-team --name app-team --instances prune
say <<EOF
Nothing uses the definition any more, so the next pass prunes it. No force was necessary.
EOF
run 0 headgate sync --repo platform --ref main

printf '\n\n%sWhat to try next%s\n' "$bold" "$plain"
say <<EOF
make demo FORGE=1                                   the same with commit statuses, on a real Gitea
make demo CROSSPLANE=1                              the same with a real Crossplane
make demo CORPUS=package.tar.gz                     the same with a real provider package
KUBEBUILDER_ASSETS=directory make demo              the same on a kube-apiserver that you have
KEEP=1 make demo                                    keep this API server at the end, for kubectl
bin/headgate render examples/quickstart/repository  the CRDs of a directory, without a cluster
bin/headgate diff examples/quickstart/repository    what a sync would do to your cluster; writes nothing
bin/headgate --help                                 every verb
examples/quickstart/README.md                       this story as text, and its files
EOF

if [ -n "${KEEP:-}" ]; then
	printf '\nexport KUBECONFIG=%s\nEverything is in %s. Press Enter to stop the API server and remove it: ' "$KUBECONFIG" "$work"
	read -r _ || :
fi
