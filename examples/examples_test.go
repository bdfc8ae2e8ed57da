//test:package served minutes=7
package examples

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"
)

func TestRender(t *testing.T) {
	type want struct {
		Active, Inactive, Objects []string
	}
	objects := []string{
		"ManagedResourceActivationPolicy.apiextensions.crossplane.io/storage",
		"CustomResourceDefinition.apiextensions.k8s.io/buckets.storage.tidewater.m.example.org",
		"CustomResourceDefinition.apiextensions.k8s.io/clusterproviderconfigs.tidewater.m.example.org",
		"CustomResourceDefinition.apiextensions.k8s.io/providerconfigs.tidewater.m.example.org",
		"CustomResourceDefinition.apiextensions.k8s.io/providerconfigusages.tidewater.m.example.org",
		"CustomResourceDefinition.apiextensions.k8s.io/snapshots.storage.tidewater.m.example.org",
		"CustomResourceDefinition.apiextensions.k8s.io/volumes.storage.tidewater.m.example.org",
		"ClusterProviderConfig.tidewater.m.example.org/default",
	}
	cases := map[string]struct {
		reason string
		path   string
		edit   map[string]string // file of the example → file that replaces it
		want   want
	}{
		"Quickstart": {
			reason: "Of twelve CRDs, three match the policy, and every provider needs three others.",
			path:   "quickstart/repository",
			want: want{
				Active: []string{
					"buckets.storage.tidewater.m.example.org",
					"snapshots.storage.tidewater.m.example.org",
					"volumes.storage.tidewater.m.example.org",
				},
				Inactive: []string{
					"bucketpolicies.storage.tidewater.m.example.org",
					"buckets.storage.tidewater.example.org",
					"instances.database.tidewater.m.example.org",
					"networks.network.tidewater.m.example.org",
					"subnets.network.tidewater.m.example.org",
					"users.database.tidewater.m.example.org",
				},
				Objects: objects,
			},
		},
		"QuickstartWider": {
			reason: "The wider policy adds a storage kind and the databases, but not the cluster-scoped buckets.",
			path:   "quickstart/repository",
			edit:   map[string]string{"policies/storage.yaml": "quickstart/demo/policy-wider.yaml"},
			want: want{
				Active: []string{
					"bucketpolicies.storage.tidewater.m.example.org",
					"buckets.storage.tidewater.m.example.org",
					"instances.database.tidewater.m.example.org",
					"snapshots.storage.tidewater.m.example.org",
					"volumes.storage.tidewater.m.example.org",
				},
				Inactive: []string{
					"buckets.storage.tidewater.example.org",
					"networks.network.tidewater.m.example.org",
					"subnets.network.tidewater.m.example.org",
					"users.database.tidewater.m.example.org",
				},
				Objects: []string{
					objects[0],
					"CustomResourceDefinition.apiextensions.k8s.io/bucketpolicies.storage.tidewater.m.example.org",
					objects[1], objects[2],
					"CustomResourceDefinition.apiextensions.k8s.io/instances.database.tidewater.m.example.org",
					objects[3], objects[4], objects[5], objects[6], objects[7],
				},
			},
		},
		"QuickstartTeam": {
			reason: "The team's repository declares no definitions; it only uses them.",
			path:   "quickstart/demo/app-team",
			want:   want{Objects: []string{"Namespace/shop", "Bucket.storage.tidewater.m.example.org/shop/invoices"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(tc.path)); err != nil {
				t.Fatal(err)
			}
			for file, by := range tc.edit {
				data, err := os.ReadFile(by)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			desired, err := render.Render(render.Input{Files: os.DirFS(dir)}, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got want
			for _, d := range desired.Definitions {
				if d.Active {
					got.Active = append(got.Active, d.Name)
				} else {
					got.Inactive = append(got.Inactive, d.Name)
				}
			}
			for _, o := range desired.Objects {
				got.Objects = append(got.Objects, o.ID.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRender(...) (-want +got):\n%s", tc.reason, diff)
			}
			for _, f := range desired.Findings {
				t.Errorf("An example has nothing to warn of: %v", f)
			}
		})
	}
}

// Headgate must accept every Sync that users copy, without unknown fields.
func TestSyncs(t *testing.T) {
	files, err := filepath.Glob("*/sync.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no Syncs: %v", err)
	}
	secrets := map[string]string{v1alpha1.DefaultPasswordEnv: "a", v1alpha1.DefaultTokenEnv: "a"}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		syncs, err := api.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, s := range syncs {
			if _, err := target.New(s, target.Surroundings{Cluster: &rest.Config{}, Getenv: func(name string) string { return secrets[name] }}); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// onlyObjects are the fields that a file cannot have.
var onlyObjects = []string{"serviceAccountName", "kubeConfig", "dependsOn", "deletionPolicy"}

// The Sync that users copy shows every field of the API that a file may have.
func TestSyncShowsEveryField(t *testing.T) {
	data, err := os.ReadFile("run/sync.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for spec, i := reflect.TypeFor[v1alpha1.Spec](), 0; i < spec.NumField(); i++ {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		shown := strings.Contains(strings.ReplaceAll(string(data), "\n  # ", "\n  "), "\n  "+name+":") // some in a comment
		if !slices.Contains(onlyObjects, name) && !shown {
			t.Errorf("run/sync.yaml does not show spec.%s", name)
		}
	}
}

// The demo runs as in `make demo`. It checks every exit code itself.
//
//test:long
func TestDemo(t *testing.T) {
	bin := programs(t)
	cases := map[string]struct {
		reason string
		args   []string
		corpus func(testing.TB) string
		assets bool     // KUBEBUILDER_ASSETS is set, and nothing was built
		rights []string // what a user replaces in run/rights-headgate.yaml, as pairs of old and new strings; nil lets Headgate do anything
		want   []string // in the output, in this order
	}{
		"Quickstart": {
			reason: "The demo in README.md must work with only the rights of a service account.",
			rights: rightsOfDemo,
			want: []string{
				"buckets.storage.tidewater.m.example.org is active",
				"5 active (+2), 4 inactive",
				"### 👀 Look: ",
				"An empty cluster",
				"3 active (+3), 6 inactive",
				"7 as applied",
				"5 active (+2), 4 inactive",
				`drift by kubectl-edit: spec.names.categories[0]: is "edited", wanted "crossplane"`,
				`"drift":"1 corrected"`,
				"9 as applied",
				"Bucket.storage.tidewater.m.example.org/shop/invoices",
				`held by guard "in use"`,
				"(exit code 3)",
				"1 pruned",
				"What to try next",
			},
		},
		"Forge": {
			reason: "The demo must also work with the statuses of a real forge.",
			args:   []string{"--forge"},
			want: []string{
				"    forge: Gitea",
				"success  headgate/demo/default/activation  5 active, 4 inactive",
				"success  headgate/demo/default/drift  no drift",
				"drift by kubectl-edit: ",
				"success  headgate/demo/default/drift  1 corrected",
				`held by guard "in use"`,
				"What to try next",
			},
		},
		"Crossplane": {
			reason: "The story is the same where Crossplane makes the CRDs.",
			args:   []string{"--crossplane"},
			want: []string{
				"Crossplane runs in it",
				"3 active (+3), 6 inactive",
				"5 active (+2), 4 inactive",
				"drift by kubectl-edit: spec.activate",
				`"drift":"1 corrected"`,
				`held by guard "in use"`,
				"1 pruned",
				"What to try next",
			},
		},
		"Assets": {
			reason: "A user who has etcd and kube-apiserver builds no API server.",
			assets: true,
			want:   []string{"An empty cluster", "3 active (+3), 6 inactive", "1 pruned", "What to try next"},
		},
		"RealPackage": {
			reason: "The demo must also work with a package that it was not written for.",
			corpus: func(tb testing.TB) string {
				tb.Helper()
				dir := tb.TempDir()
				if err := os.CopyFS(dir, fixtures.Corpus(tb, "provider-helm")); err != nil {
					tb.Fatal(err)
				}
				return dir
			},
			want: []string{
				"1 active (+1), 1 inactive",
				"2 active (+1), 0 inactive",
				`"drift":"1 corrected"`,
				"Release.helm.m.crossplane.io/shop/first",
				`held by guard "in use"`,
				"What to try next",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bin := bin
			if tc.rights != nil {
				admin := fixtures.OwnKubeconfig(t)
				account := fixtures.Grant(t, fixtures.ConfigOf(t, admin), "rights-headgate.yaml", tc.rights...)
				bin = restricted(t, bin, admin, account)
				defer func() {
					for _, request := range account.Refused() {
						t.Errorf("run/rights-headgate.yaml lacks a right: %s", request)
					}
				}()
			}
			demo := exec.Command("sh", append([]string{"quickstart/demo.sh"}, tc.args...)...)
			demo.Env = append(os.Environ(), "BIN="+bin, "CORPUS=", "KEEP=", "KUBEBUILDER_ASSETS=", "TMPDIR="+shortTemp(t))
			if tc.assets {
				demo.Env = append(demo.Env, "BIN="+withoutServers(t, bin), "KUBEBUILDER_ASSETS="+assets(t))
			}
			if tc.corpus != nil {
				demo.Env = append(demo.Env, "CORPUS="+tc.corpus(t))
			}
			out, err := demo.CombinedOutput()
			if err != nil {
				t.Fatalf("%s\n%v\n%s", tc.reason, err, out)
			}
			rest := string(out)
			for _, want := range tc.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%s\nno %q in its place in:\n%s", tc.reason, want, out)
				}
				rest = after
			}
		})
	}
}

// assets returns a directory with etcd and kube-apiserver, as KUBEBUILDER_ASSETS has them.
func assets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("make", "-C", "..", "kubernetes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fixtures.DependOn(t, "../bin/kubernetes")
	for _, name := range []string{"etcd", "kube-apiserver"} {
		link(t, "../bin/kubernetes", filepath.Join(dir, name))
	}
	return dir
}

// withoutServers returns a directory with the programs of the demo that are no servers.
func withoutServers(t *testing.T, bin string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"headgate", "by-hand"} {
		link(t, filepath.Join(bin, name), filepath.Join(dir, name))
	}
	return dir
}

func link(t *testing.T, program, name string) {
	t.Helper()
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, name); err != nil {
		t.Fatal(err)
	}
}

// While the API server is built in the background, the first scenes play. Ctrl-C then ends the build with its compilers.
func TestDemoEndsItsBuild(t *testing.T) {
	bin, fake := t.TempDir(), t.TempDir()
	link(t, fixtures.Headgate(t), filepath.Join(bin, "headgate"))
	fixtures.DependOn(t, "quickstart")
	ended := filepath.Join(fake, "ended")
	for name, script := range map[string]string{
		"make":     "case \"$*\" in *-q*) exit 1 ;; esac\necho k8s.io/one\ncompiler &\nwait",
		"compiler": "trap 'echo yes >" + ended + "; exit' TERM\necho k8s.io/two\nwhile :; do sleep 0.1; done",
	} {
		if err := os.WriteFile(filepath.Join(fake, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	demo := exec.Command("sh", "quickstart/demo.sh")
	demo.Env = append(os.Environ(), "BIN="+bin, "CORPUS=", "KEEP=", "KUBEBUILDER_ASSETS=", "TMPDIR="+shortTemp(t), "PATH="+fake+":"+os.Getenv("PATH"))
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&shown, lines.Text())
		if strings.Contains(lines.Text(), "10 CPU minutes, once): ") {
			if err := demo.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	_ = demo.Wait()
	if code := demo.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"built in the background: about 10 CPU minutes, once", "is active", "5 active (+2)", "### 👀 Look", "2 packages compiled"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %q in:\n%s", want, shown.String())
		}
	}
	for deadline := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(ended); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the compiler still runs")
		}
	}
}

// rightsOfDemo replaces names in the rights with those of the demo: its Syncs, the groups of its provider, and other objects in its
// repositories.
var rightsOfDemo = []string{
	"headgate-platform, headgate-team-shop", "headgate-default, headgate-app-team",
	"'headgate-platform', 'headgate-team-shop'", "'headgate-default', 'headgate-app-team'",
	"[aws.m.upbound.io]\n  resources: [clusterproviderconfigs]", "[tidewater.m.example.org, storage.tidewater.m.example.org, \"\"]\n  resources: [clusterproviderconfigs, buckets, namespaces]",
	"'aws.m.upbound.io/clusterproviderconfigs'", "'tidewater.m.example.org/clusterproviderconfigs', 'storage.tidewater.m.example.org/buckets', '/namespaces'",
	"s3.aws.m.upbound.io", "storage.tidewater.m.example.org",
	"aws.m.upbound.io", "tidewater.m.example.org",
}

// restricted returns a directory with the programs of the demo, in which headgate has only the rights of a service account.
// Commands that a user would run keep administrator rights.
func restricted(t *testing.T, programs, admin string, account *fixtures.Account) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{
		// The API server is already running. This process takes its place until the demo ends it.
		"controlplane": "mkdir -p \"$2\" && cp '" + account.Kubeconfig(t) + "' \"$2/kubeconfig\" && exec sleep 600",
		"by-hand":      "KUBECONFIG='" + admin + "' exec '" + programs + "/by-hand' \"$@\"",
		"headgate":     "exec '" + programs + "/headgate' \"$@\"",
		"gitea":        "exec '" + programs + "/gitea' \"$@\"",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// programs builds the programs of the demo into a directory.
func programs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, server := range []string{"controlplane", "crossplane", "gitea"} {
		built, err := filepath.Abs(filepath.Join("../bin", server))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(built, filepath.Join(bin, server)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(fixtures.Headgate(t), filepath.Join(bin, "headgate")); err != nil {
		t.Fatal(err)
	}
	fixtures.DependOn(t, "quickstart")
	for _, build := range []*exec.Cmd{
		exec.Command("make", "-C", "..", "controlplane", "crossplane", "gitea"),
		exec.Command("go", "build", "-o", filepath.Join(bin, "by-hand"), "./quickstart/byhand"),
	} {
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build, err, out)
		}
	}
	fixtures.DependOn(t, "../bin/controlplane")
	fixtures.DependOn(t, "../bin/crossplane")
	fixtures.DependOn(t, "../bin/gitea")
	return bin
}

// shortTemp returns a temporary directory with a name short enough for etcd's socket.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo") //nolint:usetesting // t.TempDir says the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			t.Errorf("The demo leaves nothing behind, but: %v %v", entries, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
