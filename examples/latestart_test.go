package examples

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render/crossplane"
)

const (
	objectsOfProvider = "objects.kubernetes.m.crossplane.io"
	configsOfProvider = "clusterproviderconfigs.kubernetes.m.crossplane.io"
)

var (
	crdsAPI    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	objectsAPI = schema.GroupVersionResource{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Resource: "objects"}
	mapsAPI    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// A lateStart is the example in a cluster: a repository, the loop that follows it, and the provider.
type lateStart struct {
	*process

	kubeconfig string
	provider   *fixtures.Provider
	repository string
	log        *fixtures.Buffer // of the loop
}

// newLateStart prepares the cluster. It starts neither the loop nor the provider.
func newLateStart(t *testing.T, kubeconfig string) *lateStart {
	t.Helper()
	l := &lateStart{process: &process{T: t}, kubeconfig: kubeconfig, repository: t.TempDir(), log: &fixtures.Buffer{}}
	l.reach(fixtures.ConfigOf(t, kubeconfig))
	access, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	l.write(object("v1", "Namespace", "", "crossplane-system"))
	secret := object("v1", "Secret", "crossplane-system", "cluster")
	secret.Object["data"] = map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(access)}
	l.write(secret)
	l.git("init", "-q", "-b", "main")
	return l
}

func (l *lateStart) git(args ...string) {
	l.Helper()
	run := exec.CommandContext(l.Context(), "git", append([]string{"-C", l.repository, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	if out, err := run.CombinedOutput(); err != nil {
		l.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// push commits files below the path of the Sync. An empty text removes a file.
func (l *lateStart) push(files map[string]string) {
	l.Helper()
	for name, text := range files {
		path := filepath.Join(l.repository, "platform", name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				l.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			l.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			l.Fatal(err)
		}
	}
	l.git("add", "-A")
	l.git("commit", "-qm", "another")
}

// example returns files of the example: the name in the repository → the content.
func example(t *testing.T, directory string, names ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("late-start", directory, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	}
	return files
}

// loop starts the loop with the Sync of the example. spec has further fields of it.
func (l *lateStart) loop(spec string) {
	l.Helper()
	sync := example(l.T, ".", "sync.yaml")["sync.yaml"] + spec
	sync = strings.NewReplacer("https://github.com/example-org/platform.git", l.repository, "interval: 30s", "interval: 1s").Replace(sync)
	dir := l.TempDir()
	file := filepath.Join(dir, "sync.yaml")
	if err := os.WriteFile(file, []byte(sync), 0o600); err != nil {
		l.Fatal(err)
	}
	run := exec.Command(fixtures.Headgate(l.T), "run", "-f", file, "--cache-dir", filepath.Join(dir, "cache"))
	run.Env = []string{"KUBECONFIG=" + l.kubeconfig, "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	run.Stdout, run.Stderr = l.log, l.log
	if err := run.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if l.Failed() {
			l.Logf("headgate:\n%s", l.log)
		}
	})
}

// until waits until a condition holds.
func (l *lateStart) until(what string, is func(ctx context.Context) (bool, error)) {
	l.Helper()
	for end := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		ok, err := is(l.Context())
		if ok {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("%s: not so after %s: %v", what, fixtures.Patience, err)
		}
	}
}

// served waits until a CRD is established.
func (l *lateStart) served(crd string) {
	l.Helper()
	l.until(crd+" is served", func(ctx context.Context) (bool, error) {
		u, err := l.admin.Resource(crdsAPI).Get(ctx, crd, metav1.GetOptions{})
		return err == nil && isTrue(u, "Established"), err
	})
}

// gone waits until a CRD is gone.
func (l *lateStart) gone(crd string) {
	l.Helper()
	l.until(crd+" is gone", func(ctx context.Context) (bool, error) {
		_, err := l.admin.Resource(crdsAPI).Get(ctx, crd, metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}

// absent fails if a CRD is there.
func (l *lateStart) absent(crd string) {
	l.Helper()
	if _, err := l.admin.Resource(crdsAPI).Get(l.Context(), crd, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		l.Errorf("the CRD %s is there: %v", crd, err)
	}
}

// ready waits until the provider reports the greeting as synced and ready, and checks its ConfigMap.
func (l *lateStart) ready() {
	l.Helper()
	l.until("the greeting is synced and ready", func(ctx context.Context) (bool, error) {
		u, err := l.admin.Resource(objectsAPI).Namespace("default").Get(ctx, "greeting", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return isTrue(u, "Synced") && isTrue(u, "Ready"), fmt.Errorf("%v", u.Object["status"])
	})
	made, err := l.admin.Resource(mapsAPI).Namespace("default").Get(l.Context(), "greeting", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	if text, _, _ := unstructured.NestedString(made.Object, "data", "text"); text != "hello" {
		l.Errorf("the ConfigMap that the provider made: %v", made.Object)
	}
}

// removeGreeting deletes the greeting, as a user does.
func (l *lateStart) removeGreeting() {
	l.Helper()
	greetings := l.admin.Resource(objectsAPI).Namespace("default")
	if err := greetings.Delete(l.Context(), "greeting", metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

// says waits until the loop has logged a text.
func (l *lateStart) says(text string) {
	l.Helper()
	l.until("the loop logs "+text, func(context.Context) (bool, error) { return strings.Contains(l.log.String(), text), nil })
}

// waits waits until the provider runs, and fails if the controller of Objects runs.
func (l *lateStart) waits() {
	l.Helper()
	l.provider.Eventually(l.T, "the provider reads its configuration", func(context.Context) (bool, error) { return l.provider.Reads(configsOfProvider) > 0, nil })
	if n := l.provider.Reads(objectsOfProvider); n > 0 {
		l.Errorf("the controller of Objects runs without their CRD: it read them %d times", n)
	}
}

// restart restarts the provider, after which no controller of Objects runs.
func (l *lateStart) restart() {
	l.Helper()
	l.provider.Stop()
	l.provider.Start(l.T)
	l.waits()
}

func isTrue(u *unstructured.Unstructured, condition string) bool {
	return crossplane.Condition(u, condition).Status == metav1.ConditionTrue
}

// packageOfProvider returns the package of the provider as a directory of the repository.
func packageOfProvider(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, file := range fixtures.Corpus(t, "provider-kubernetes") {
		files["provider-kubernetes/"+name] = string(file.Data)
	}
	return files
}

// withdraw pushes a commit without the policy and the greeting. A guard holds the CRD until a user deletes the greeting.
func (l *lateStart) withdraw() {
	l.Helper()
	l.log.Reset()
	l.push(map[string]string{"policy.yaml": "", "greeting.yaml": ""})
	l.says("in use")
	l.served(objectsOfProvider)
	l.removeGreeting()
	l.gone(objectsOfProvider)
	l.says("the provider provider-kubernetes still runs the controllers of 1 deactivated kind; they stop when it restarts")
}

// byHand does with kubectl what a push does, and returns the time that it takes. It leaves nothing behind.
func (l *lateStart) byHand(kubectl string) time.Duration {
	l.Helper()
	dir := l.TempDir()
	for name, text := range map[string]string{
		"crd.yaml":      packageOfProvider(l.T)["provider-kubernetes/crds/kubernetes.m.crossplane.io_objects.yaml"],
		"greeting.yaml": example(l.T, "later", "greeting.yaml")["greeting.yaml"],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			l.Fatal(err)
		}
	}
	do := func(args ...string) {
		l.Helper()
		run := exec.CommandContext(l.Context(), kubectl, append([]string{"--kubeconfig", l.kubeconfig}, args...)...)
		run.Dir, run.Env = dir, []string{"HOME=" + dir}
		if out, err := run.CombinedOutput(); err != nil {
			l.Fatalf("kubectl %q: %v\n%s", args, err, out)
		}
	}
	begun := time.Now()
	do("apply", "--server-side", "-f", "crd.yaml")
	do("wait", "--for=condition=Established", "--timeout=10m", "crd/"+objectsOfProvider)
	do("apply", "--server-side", "-f", "greeting.yaml")
	l.ready()
	took := time.Since(begun)
	do("delete", "-f", "greeting.yaml", "-f", "crd.yaml")
	l.gone(objectsOfProvider)
	return took
}

// The story of README.md where Headgate makes the CRDs, and what can go wrong on the way.
//
//test:long
func TestLateStart(t *testing.T) {
	t.Parallel()
	l := newLateStart(t, fixtures.OwnKubeconfig(t))
	files := packageOfProvider(t)
	maps.Copy(files, example(t, "platform", "config.yaml"))
	l.push(files)
	l.loop("")
	l.served(configsOfProvider)
	l.absent(objectsOfProvider)
	l.provider = fixtures.StartProvider(t, fixtures.ConfigOf(t, l.kubeconfig))
	l.waits()
	t.Logf("with kubectl apply by hand: %.1f s", l.byHand(fixtures.Program(t, "kubectl")).Seconds())
	l.restart()

	later := example(t, "later", "policy.yaml", "greeting.yaml")

	t.Log("the policy is reverted before the CRD is established")
	l.write(fixtures.Documents(t, rival)[0])
	l.served("rivals.kubernetes.m.crossplane.io")
	l.push(map[string]string{"policy.yaml": later["policy.yaml"]})
	l.until("the CRD is there, and is not established", func(ctx context.Context) (bool, error) {
		u, err := l.admin.Resource(crdsAPI).Get(ctx, objectsOfProvider, metav1.GetOptions{})
		return err == nil && crossplane.Condition(u, "NamesAccepted").Status == metav1.ConditionFalse, err
	})
	l.push(map[string]string{"policy.yaml": ""})
	l.gone(objectsOfProvider)
	if n := l.provider.Reads(objectsOfProvider); n > 0 {
		t.Errorf("the controller of Objects started for a CRD that was never established: it read them %d times", n)
	}
	if err := l.admin.Resource(crdsAPI).Delete(t.Context(), "rivals.kubernetes.m.crossplane.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.gone("rivals.kubernetes.m.crossplane.io")

	t.Log("a policy is pushed")
	pushed := time.Now()
	l.push(later)
	l.served(objectsOfProvider)
	served := time.Since(pushed)
	l.ready()
	t.Logf("from push to Established: %.1f s, to Ready: %.1f s", served.Seconds(), time.Since(pushed).Seconds())

	t.Log("the policy goes while the Object exists, and the controller runs until the restart")
	l.withdraw()
	reads := l.provider.Reads(objectsOfProvider)
	l.provider.Eventually(t, "the controller still looks for Objects", func(context.Context) (bool, error) { return l.provider.Reads(objectsOfProvider) > reads, nil })
	l.restart()

	t.Log("the provider dies while its CRD is made")
	l.push(later)
	l.provider.Kill()
	l.served(objectsOfProvider)
	l.provider.Start(t)
	l.ready()
}

// Without safe-start, every managed kind of the package is active without a policy, and a commit without the policy deactivates none. The
// provider may not watch CRDs, so it starts all of its controllers at once, which works because all CRDs are there.
//
//test:long
func TestLateStartWithoutSafeStart(t *testing.T) {
	t.Parallel()
	l := newLateStart(t, fixtures.OwnKubeconfig(t))
	files := packageOfProvider(t)
	const meta = "provider-kubernetes/crossplane.yaml"
	files[meta], _, _ = strings.Cut(files[meta], "  capabilities:")
	maps.Copy(files, example(t, "platform", "config.yaml"))
	maps.Copy(files, example(t, "later", "policy.yaml", "greeting.yaml"))
	rights := fixtures.Documents(t, blind)
	for _, u := range rights {
		l.write(u)
	}
	l.push(files)
	l.loop("  conversion: {strategy: None}\n")
	for _, name := range append(othersOfProvider, objectsOfProvider) {
		l.served(name)
	}
	account := fixtures.AccountOf(t, fixtures.ConfigOf(t, l.kubeconfig), "crossplane-system", "provider", rights)
	l.provider = fixtures.StartProvider(t, account.Config())
	l.ready()
	l.log.Reset()
	l.push(map[string]string{"policy.yaml": ""})
	l.says("\"pass\"")
	for _, name := range append(othersOfProvider, objectsOfProvider) {
		l.served(name)
	}
}

// othersOfProvider are the managed kinds of the provider without a policy.
var othersOfProvider = []string{
	"objects.kubernetes.crossplane.io", "observedobjectcollections.kubernetes.crossplane.io", "observedobjectcollections.kubernetes.m.crossplane.io",
}

// blind are the rights of a provider that may not watch CRDs.
const blind = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: provider}
rules:
- {apiGroups: ["", kubernetes.crossplane.io, kubernetes.m.crossplane.io, coordination.k8s.io, authorization.k8s.io, events.k8s.io], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: provider}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: provider}
subjects: [{kind: ServiceAccount, name: provider, namespace: crossplane-system}]
`

// rival is a CRD that has a name of the CRD of Objects, which cannot be established beside it.
const rival = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rivals.kubernetes.m.crossplane.io}
spec:
  group: kubernetes.m.crossplane.io
  names: {kind: Rival, listKind: ObjectList, plural: rivals, singular: rival}
  scope: Namespaced
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// The story of README.md where a real Crossplane makes the CRDs.
//
//test:long
func TestLateStartWithCrossplane(t *testing.T) {
	t.Parallel()
	kubeconfig := fixtures.KubeconfigForCrossplane(t)
	upstream := fixtures.StartCrossplane(t, kubeconfig, fixtures.CrossplaneOptions{})
	l := newLateStart(t, kubeconfig)
	files := example(t, "platform", "config.yaml", "provider.yaml")
	image := upstream.Push(t, "provider-kubernetes", fixtures.Corpus(t, "provider-kubernetes"))
	files["provider.yaml"] = strings.Replace(files["provider.yaml"], "xpkg.crossplane.io/crossplane-contrib/provider-kubernetes:v1.2.1", image, 1)
	l.push(files)
	l.loop("")
	upstream.Installed(t, "provider-kubernetes")
	l.absent(objectsOfProvider)
	l.provider = fixtures.StartProvider(t, fixtures.ConfigOf(t, kubeconfig))
	l.waits()

	later := example(t, "later", "policy.yaml", "greeting.yaml")
	pushed := time.Now()
	l.push(later)
	l.ready()
	t.Logf("from push to Ready, with Crossplane: %.1f s", time.Since(pushed).Seconds())
	l.withdraw()
	l.restart()
	l.push(later)
	l.ready()
}
