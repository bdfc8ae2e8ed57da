//test:package raced served minutes=3
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/git/signature"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
)

// TestMain runs the program itself if a script started this binary. Otherwise it runs the tests, with one API server for all of
// them.
func TestMain(m *testing.M) {
	testscript.Main(withControlPlane{m}, map[string]func(){"headgate": main, "kubectl-headgate": main})
}

type withControlPlane struct{ *testing.M }

func (w withControlPlane) Run() int {
	fixtures.AtOnce(4)
	return fixtures.WithControlPlane(w.M)
}

// TestScripts runs the program like a user without a cluster: without a home directory, a git program, or a network.
//
//test:unraced
func TestScripts(t *testing.T) {
	t.Parallel() // with TestClusterScripts
	all := maps.Clone(commands)
	all["push"] = func(ts *testscript.TestScript, _ bool, args []string) { push(t, ts, args) }
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: all, Setup: func(env *testscript.Env) error {
		env.Setenv("MUTANT_OF_HEADGATE", os.Getenv("MUTANT_OF_HEADGATE")) // of fixtures/mutate
		withRegistry(t, env)
		return alone(env)
	}})
}

// withRegistry starts a registry for one script.
func withRegistry(t *testing.T, env *testscript.Env) {
	t.Helper()
	packages := fixtures.StartRegistry(t)
	env.Values[theRegistry{}] = packages
	env.Setenv("REGISTRY", packages.Host)
}

// theRegistry is the key of a script's registry in env.Values.
type theRegistry struct{}

func registryOf(ts *testscript.TestScript) *fixtures.Registry {
	r, ok := ts.Value(theRegistry{}).(*fixtures.Registry)
	if !ok {
		ts.Fatalf("this script has no registry")
	}
	return r
}

// push pushes a directory to the registry of the script: push DIR REPOSITORY TAG.
func push(t *testing.T, ts *testscript.TestScript, args []string) {
	t.Helper()
	registryOf(ts).Push(t, args[1], args[2], filesOf(ts, args[0]), 0)
}

// asked fails unless the registry received COUNT requests that match PATTERN since the previous call: asked COUNT PATTERN.
func asked(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	requests, _ := registryOf(ts).Asked()
	matching := slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return !pattern.MatchString(r) })
	if len(matching) != want {
		ts.Fatalf("the registry was asked %d times for %q, want %d: %q", len(matching), args[1], want, requests)
	}
}

// refuse makes the registry answer the next COUNT requests with an error: refuse COUNT.
func refuse(ts *testscript.TestScript, _ bool, args []string) {
	most, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	var met atomic.Int64
	registryOf(ts).Through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if met.Add(1) <= most {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, req)
		})
	})
}

// outage makes the registry answer every request with status 503: outage.
func outage(ts *testscript.TestScript, _ bool, _ []string) {
	registryOf(ts).Fail(http.StatusServiceUnavailable)
}

// filesOf are the files of a directory.
func filesOf(ts *testscript.TestScript, dir string) fstest.MapFS {
	files := fstest.MapFS{}
	tree := os.DirFS(ts.MkAbs(dir))
	ts.Check(fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	}))
	return files
}

// TestClusterScripts runs one pass at a time against an API server.
//
//test:unraced
func TestClusterScripts(t *testing.T) {
	t.Parallel() // with TestScripts
	againstCluster(t, "testdata/cluster")
}

// TestLoopScripts runs loops against an API server.
func TestLoopScripts(t *testing.T) { againstCluster(t, "testdata/loop") }

// againstCluster runs the scripts of a directory, with an API server.
func againstCluster(t *testing.T, dir string) {
	t.Helper()
	kubeconfig := fixtures.Kubeconfig(t)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(commands)
	all["push"] = func(ts *testscript.TestScript, _ bool, args []string) { push(t, ts, args) }
	testscript.Run(t, testscript.Params{Dir: dir, Cmds: all, Setup: func(env *testscript.Env) error {
		withRegistry(t, env)
		env.Setenv("KUBECONFIG", kubeconfig)
		env.Setenv("EXAMPLES", examples)
		return alone(env)
	}})
}

func alone(env *testscript.Env) error {
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("NO_COLOR", "1")
	// A program with the race detector sleeps for a second before it exits, and the scripts start it hundreds of times.
	env.Setenv("GORACE", "atexit_sleep_ms=50")
	return nil
}

var commands = map[string]func(*testscript.TestScript, bool, []string){
	"exits":     exits,
	"provider":  provider,
	"policy":    policy,
	"xpkg":      xpkg,
	"branch":    branch,
	"install":   placed,
	"asked":     asked,
	"outage":    outage,
	"refuse":    refuse,
	"depend":    depend,
	"project":   projectFile,
	"commit":    commit,
	"signed":    signed,
	"lose":      lose,
	"apply":     apply,
	"flux":      flux,
	"edit":      edit,
	"delete":    remove,
	"annotated": hasAnnotation,
	"digest":    digest,
	"until":     until,
}

// exits runs a program and expects an exit code: exits 2 headgate diff a b.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var failed *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &failed):
		got = failed.ExitCode()
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	coded(ts, args)
}

// coded expects every reason in the JSON of a verb to have a code.
func coded(ts *testscript.TestScript, args []string) {
	i := slices.Index(args, "-o")
	if i < 0 || args[i+1] != "json" {
		return
	}
	output := ts.ReadFile("stdout")
	if output == "" { // the verb printed to standard error only
		return
	}
	without, err := fixtures.Uncoded([]byte(output))
	ts.Check(err)
	if len(without) > 0 {
		ts.Fatalf("there is no code beside %q", without)
	}
}

// provider writes a provider package: provider DIR GROUP plural=Kind...
func provider(ts *testscript.TestScript, _ bool, args []string) {
	dir, group := ts.MkAbs(args[0]), args[1]
	write(ts, filepath.Join(dir, "crossplane.yaml"), `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-`+filepath.Base(dir)+`
spec:
  capabilities: [safe-start]
`)
	for _, arg := range args[2:] {
		plural, kind, _ := strings.Cut(arg, "=")
		write(ts, filepath.Join(dir, "crds", plural+".yaml"), fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[3]s
spec:
  group: %[3]s
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[4]s, categories: [managed]}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, plural, kind, group, strings.ToLower(kind)))
	}
}

// xpkg builds the .xpkg file of a package: xpkg DIR FILE.
func xpkg(ts *testscript.TestScript, _ bool, args []string) {
	data, err := fixtures.XPKG(filesOf(ts, args[0]))
	ts.Check(err)
	write(ts, ts.MkAbs(args[1]), string(data))
}

// placed writes the object that installs a package: install FILE KIND NAME IMAGE.
func placed(ts *testscript.TestScript, _ bool, args []string) {
	write(ts, ts.MkAbs(args[0]), fmt.Sprintf("apiVersion: pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  package: %s\n", args[1], args[2], args[3]))
}

// depend writes the metadata of a configuration that depends on providers: depend FILE NAME
// [SOURCE CONSTRAINT]...
func depend(ts *testscript.TestScript, _ bool, args []string) {
	text := fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: %s\nspec:\n  dependsOn:\n", args[1])
	for rest := args[2:]; len(rest) > 1; rest = rest[2:] {
		text += fmt.Sprintf("  - provider: %s\n    version: %q\n", rest[0], rest[1])
	}
	write(ts, ts.MkAbs(args[0]), text)
}

// projectFile writes a project that depends on a provider: project FILE NAME SOURCE CONSTRAINT.
func projectFile(ts *testscript.TestScript, _ bool, args []string) {
	write(ts, ts.MkAbs(args[0]), fmt.Sprintf(`apiVersion: meta.dev.upbound.io/v2alpha1
kind: Project
metadata: {name: %s}
spec:
  dependsOn:
  - apiVersion: pkg.crossplane.io/v1
    kind: Provider
    package: %s
    version: %s
  repository: xpkg.example.org/team/shop
`, args[1], args[2], args[3]))
}

// policy writes a policy: policy FILE NAME PATTERN...
func policy(ts *testscript.TestScript, _ bool, args []string) {
	write(ts, ts.MkAbs(args[0]), `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata:
  name: `+args[1]+`
spec:
  activate:
  - "`+strings.Join(args[2:], "\"\n  - \"")+"\"\n")
}

func write(ts *testscript.TestScript, name, content string) {
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
	ts.Check(os.WriteFile(name, []byte(content), 0o644))
}

// digest sets $DIGEST to the digest of the approval in the previous standard output.
func digest(ts *testscript.TestScript, _ bool, _ []string) {
	found := regexp.MustCompile(`(?m)^! approve ([0-9a-f]{32})$`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("nothing is there to approve")
	}
	ts.Setenv("DIGEST", found[1])
}

// branch creates a branch at the commit of another branch: branch DIR BRANCH FROM.
func branch(ts *testscript.TestScript, _ bool, args []string) {
	repository, err := git.PlainOpen(ts.MkAbs(args[0]))
	ts.Check(err)
	from, err := repository.Reference(plumbing.NewBranchReferenceName(args[2]), true)
	ts.Check(err)
	ts.Check(repository.Storer.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(args[1]), from.Hash())))
}

// commit commits a directory unchanged to a branch: commit DIR BRANCH [MESSAGE].
func commit(ts *testscript.TestScript, _ bool, args []string) { commitBy(ts, nil, args) }

// signed commits a directory unchanged to a branch and signs the commit with a new SSH key. It writes the public key to KEY. With
// TAG it also creates a signed tag: signed KEY DIR BRANCH [TAG].
func signed(ts *testscript.TestScript, _ bool, args []string) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	block, err := ssh.MarshalPrivateKey(private, "")
	ts.Check(err)
	signer, err := signature.NewSSHSigner(pem.EncodeToMemory(block), nil)
	ts.Check(err)
	key, err := ssh.NewPublicKey(public)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), ssh.MarshalAuthorizedKey(key), 0o600))
	commitBy(ts, signer, args[1:3])
	if len(args) < 4 {
		return
	}
	repository, err := git.PlainOpen(ts.MkAbs(args[1]))
	ts.Check(err)
	payload := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger somebody <somebody@example.org> 1700000000 +0000\n\na tag\n", ts.Getenv("COMMIT"), args[3])
	sig, err := signer.Sign(strings.NewReader(payload))
	ts.Check(err)
	tag := &plumbing.MemoryObject{}
	tag.SetType(plumbing.TagObject)
	_, err = tag.Write([]byte(payload + string(sig)))
	ts.Check(err)
	id, err := repository.Storer.SetEncodedObject(tag)
	ts.Check(err)
	ts.Check(repository.Storer.SetReference(plumbing.NewHashReference(plumbing.NewTagReferenceName(args[3]), id)))
}

// commitBy commits a directory unchanged. A nil signer leaves the commit unsigned.
func commitBy(ts *testscript.TestScript, signer git.Signer, args []string) {
	dir, branch := ts.MkAbs(args[0]), plumbing.NewBranchReferenceName(args[1])
	repository, err := git.PlainOpen(dir)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repository, err = git.PlainInitWithOptions(dir, &git.PlainInitOptions{InitOptions: git.InitOptions{DefaultBranch: branch}})
	}
	ts.Check(err)
	ts.Check(repository.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, branch)))
	tree, err := repository.Worktree()
	ts.Check(err)
	ts.Check(tree.AddWithOptions(&git.AddOptions{All: true}))
	by := &object.Signature{Name: "somebody", Email: "somebody@example.org", When: time.Unix(1_700_000_000, 0)}
	message := "a commit"
	if len(args) > 2 {
		message = strings.Join(args[2:], "\n\n")
	}
	id, err := tree.Commit(message, &git.CommitOptions{Author: by, AllowEmptyCommits: true, Signer: signer})
	ts.Check(err)
	ts.Setenv("COMMIT", id.String())
}

// lose deletes the content of all files from an unpacked repository: lose DIR.
func lose(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	repository, err := git.PlainOpen(dir)
	ts.Check(err)
	blobs, err := repository.BlobObjects()
	ts.Check(err)
	ts.Check(blobs.ForEach(func(b *object.Blob) error {
		id := b.Hash.String()
		return os.Remove(filepath.Join(dir, ".git", "objects", id[:2], id[2:]))
	}))
}

// apply applies a file like kubectl apply: apply FILE.
func apply(ts *testscript.TestScript, _ bool, args []string) {
	applyAs(ts, "kubectl", args[0], func(*unstructured.Unstructured) {})
}

// flux applies a file like a Flux Kustomization: flux NAME FILE.
func flux(ts *testscript.TestScript, _ bool, args []string) {
	applyAs(ts, "kustomize-controller", args[1], func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": args[0], "kustomize.toolkit.fluxcd.io/namespace": "flux-system"})
	})
}

func applyAs(ts *testscript.TestScript, manager, file string, edit func(*unstructured.Unstructured)) {
	for document := range strings.SplitSeq(ts.ReadFile(file), "\n---\n") {
		u := &unstructured.Unstructured{}
		ts.Check(yaml.Unmarshal([]byte(document), &u.Object))
		edit(u)
		gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		_, err := client(ts).Resource(gvr).Namespace(u.GetNamespace()).Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true})
		ts.Check(err)
	}
}

// edit replaces an object with the content of a file, like kubectl edit: edit FILE.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	u := &unstructured.Unstructured{}
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[0])), &u.Object))
	body, err := u.MarshalJSON()
	ts.Check(err)
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	_, err = client(ts).Resource(gvr).Namespace(u.GetNamespace()).Patch(context.Background(), u.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-edit"})
	ts.Check(err)
}

// hasAnnotation expects an object to have an annotation that matches: annotated RESOURCE NAME NAMESPACE KEY PATTERN.
func hasAnnotation(ts *testscript.TestScript, _ bool, args []string) {
	o, err := client(ts).Resource(schema.ParseGroupResource(args[0]).WithVersion("v1")).Namespace(args[2]).Get(context.Background(), args[1], metav1.GetOptions{})
	ts.Check(err)
	pattern, err := regexp.Compile(args[4])
	ts.Check(err)
	if value := o.GetAnnotations()[args[3]]; !pattern.MatchString(value) {
		ts.Fatalf("%s of %s is %s", args[3], args[1], value)
	}
}

// remove deletes an object and waits until it is gone: delete RESOURCE.GROUP NAME [NAMESPACE]. NAMESPACE defaults to "default" for
// namespaced objects.
func remove(ts *testscript.TestScript, _ bool, args []string) {
	gvr := schema.ParseGroupResource(args[0]).WithVersion("v1beta1")
	namespace := "default"
	switch gvr.Group {
	case "apiextensions.k8s.io":
		gvr.Version, namespace = "v1", ""
	case "":
		gvr.Version = "v1"
	}
	if len(args) > 2 {
		namespace = args[2]
	}
	at := client(ts).Resource(gvr).Namespace(namespace)
	before, err := at.Get(context.Background(), args[1], metav1.GetOptions{})
	ts.Check(err)
	ts.Check(at.Delete(context.Background(), args[1], metav1.DeleteOptions{}))
	for {
		now, err := at.Get(context.Background(), args[1], metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != before.GetUID() { // a controller may recreate it immediately
			return
		}
		ts.Check(err)
		time.Sleep(20 * time.Millisecond)
	}
}

func client(ts *testscript.TestScript) dynamic.Interface {
	config, err := clientcmd.BuildConfigFromFlags("", ts.Getenv("KUBECONFIG"))
	ts.Check(err)
	c, err := dynamic.NewForConfig(config)
	ts.Check(err)
	return c
}

// until repeats a program until its output matches: until PATTERN PROGRAM....
func until(ts *testscript.TestScript, _ bool, args []string) {
	for begun := time.Now(); time.Since(begun) < fixtures.Patience; time.Sleep(100 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...)
		if regexp.MustCompile("(?m)" + args[0]).MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%v never said %s", args[1:], args[0])
}
