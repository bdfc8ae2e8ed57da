package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
)

const home = "headgate-system"

// An installation is an overlay in a whole API server.
type installation struct {
	*testing.T

	config  *rest.Config // of an administrator
	admin   *kubernetes.Clientset
	objects []*unstructured.Unstructured
	deploy  appsv1.Deployment
}

// The overlays are accepted by a whole API server. No kubelet runs there, so the test starts the program itself: with the arguments,
// the variables and the mounts of the container, and the rights and a token of its service account.
func TestDeployment(t *testing.T) {
	t.Parallel()
	kubeconfig := fixtures.StartKubernetes(t)
	repository := quickstart(t)

	t.Run("Observe", func(t *testing.T) {
		i := newInstallation(t, kubeconfig, "observe")
		i.admits()
		p := i.start(repository)
		p.await("/readyz", `^ok`)
		p.await("/metrics", `headgate_last_success_timestamp_seconds\{sync="headgate-system/platform"\} [1-9]`)
		p.await("/metrics", `headgate_sync_info\{ready="Unknown",revision="[0-9a-f]{40}",sync="headgate-system/platform"\} 1`) // no tool applies the commit
		p.end()
		for _, r := range p.requests() {
			if method, _, _ := strings.Cut(r, " "); method != http.MethodGet {
				t.Errorf("an observer writes: %s", r)
			}
		}
	})
	t.Run("Controller", func(t *testing.T) { newInstallation(t, kubeconfig, "controller").admits() })
	t.Run("Apply", func(t *testing.T) {
		i := newInstallation(t, kubeconfig, "run")
		i.admits()
		p := i.start(repository)
		p.await("/readyz", `^ok`)
		p.await("/metrics", `headgate_sync_info\{ready="True",revision="[0-9a-f]{40}",sync="headgate-system/platform"\} 1`)
		p.await("/metrics", `headgate_definitions\{provider="provider-tidewater",state="active",sync="headgate-system/platform"\} [1-9]`)
		p.await("/metrics", `headgate_api_requests_total\{verb="PATCH"\} [1-9]`)
		p.end()
		if _, err := i.admin.CoreV1().ConfigMaps(home).Get(t.Context(), "headgate-platform", metav1.GetOptions{}); err != nil {
			t.Errorf("the inventory: %v", err)
		}
	})
}

// quickstart returns a Git repository with the provider and the policy of the quickstart.
func quickstart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"provider-tidewater", "policies"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join("quickstart", "repository", part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "one"}} {
		run := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return dir
}

// newInstallation applies an overlay, as 'kubectl apply --server-side -k' does.
func newInstallation(t *testing.T, kubeconfig, overlay string) *installation {
	t.Helper()
	config := fixtures.ConfigOf(t, kubeconfig)
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{T: t, config: config, admin: admin}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	i.objects = fixtures.Documents(t, string(text))
	p := &process{T: t}
	p.reach(config)
	for _, kind := range []string{"Namespace", ""} { // as kubectl, namespaces first
		for _, u := range i.objects {
			if (u.GetKind() == "Namespace") == (kind != "") {
				p.write(u)
			}
		}
	}
	deployment := i.find("Deployment")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &i.deploy); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *installation) find(kind string) *unstructured.Unstructured {
	i.Helper()
	at := slices.IndexFunc(i.objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind })
	if at < 0 {
		i.Fatalf("the overlay has no %s", kind)
	}
	return i.objects[at]
}

// admits creates Pods from the template of the Deployment. The namespace enforces the profile restricted, so the API server refuses
// each change that weakens the template.
func (i *installation) admits() {
	i.Helper()
	no, yes, root := false, true, int64(0)
	create := func(edit func(*corev1.PodSpec)) error {
		template := i.deploy.Spec.Template.DeepCopy()
		edit(&template.Spec)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "headgate-", Labels: template.Labels}, Spec: template.Spec}
		_, err := i.admin.CoreV1().Pods(home).Create(i.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create(func(*corev1.PodSpec) {}); err != nil {
		i.Errorf("a Pod of the Deployment: %v", err)
	}
	for name, edit := range map[string]func(*corev1.PodSpec){
		"HostNetwork": func(s *corev1.PodSpec) { s.HostNetwork = true },
		"Root":        func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = &root },
		"MayBeRoot":   func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = &no },
		"NoSeccomp":   func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"Escalates":   func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes },
		"Capable":     func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
	} {
		if err := create(edit); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
			i.Errorf("%s: a Pod that is weaker than the template: %v", name, err)
		}
	}
	container := i.deploy.Spec.Template.Spec.Containers[0]
	if !*container.SecurityContext.ReadOnlyRootFilesystem { // the profile does not ask for it
		i.Error("the container can write to its root file system")
	}
	release, err := os.ReadFile("../.github/workflows/release.yaml")
	if err != nil {
		i.Fatal(err)
	}
	image, digest, _ := strings.Cut(container.Image, "@")
	if !strings.Contains(string(release), "KO_DOCKER_REPO: "+image+"\n") || !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		i.Errorf("the image is not that of the release, or not pinned: %s", container.Image)
	}
	for _, port := range container.Ports {
		if !slices.Contains(container.Args, fmt.Sprintf("--%s-address=:%d", port.Name, port.ContainerPort)) {
			i.Errorf("nothing listens on the port %s: %q", port.Name, container.Args)
		}
	}
}

// A pod is the program as the container of the Deployment starts it.
type pod struct {
	*testing.T

	cmd    *exec.Cmd
	ended  chan struct{}
	mu     sync.Mutex
	asked  []string          // "METHOD path"
	hears  map[string]string // the address of each flag
	output strings.Builder
}

// start starts the program in a world that looks to it like that of the container.
func (i *installation) start(repository string) *pod {
	i.Helper()
	p := &pod{T: i.T, ended: make(chan struct{}), hears: map[string]string{}}
	spec := i.deploy.Spec.Template.Spec
	container := spec.Containers[0]
	mounts := map[string]string{}
	var inside []string // each path in the container, and its directory here
	for _, m := range container.VolumeMounts {
		mounts[m.MountPath] = i.TempDir()
		inside = append(inside, "="+m.MountPath, "="+mounts[m.MountPath])
		at := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if of := spec.Volumes[at].ConfigMap; of != nil {
			i.fill(mounts[m.MountPath], of.Name, repository)
		}
	}
	p.cmd = exec.Command(fixtures.Headgate(i.T))
	port := regexp.MustCompile(`=:\d+$`) // another test of the machine may use it
	for _, arg := range container.Args {
		p.cmd.Args = append(p.cmd.Args, port.ReplaceAllString(strings.NewReplacer(inside...).Replace(arg), "=127.0.0.1:0"))
	}
	p.cmd.Dir = i.TempDir()
	p.cmd.Env = []string{"KUBECONFIG=" + i.kubeconfig(p, spec.ServiceAccountName), "TMPDIR=" + mounts["/tmp"], "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	for _, v := range container.Env {
		p.cmd.Env = append(p.cmd.Env, v.Name+"="+v.Value)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		i.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		i.Fatal(err)
	}
	go p.read(stderr)
	i.Cleanup(p.end)
	return p
}

// fill writes the files of a ConfigMap, with the repository of the test in the Sync, and no forge.
func (i *installation) fill(dir, name, repository string) {
	i.Helper()
	of, err := i.admin.CoreV1().ConfigMaps(home).Get(i.Context(), name, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	for file, text := range of.Data {
		var s map[string]any
		if err := yaml.Unmarshal([]byte(text), &s); err != nil {
			i.Fatal(err)
		}
		spec, _ := s["spec"].(map[string]any)
		delete(spec, "statuses")
		spec["source"] = map[string]any{"repo": repository, "ref": "main"}
		data, err := yaml.Marshal(s)
		if err != nil {
			i.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			i.Fatal(err)
		}
	}
}

// kubeconfig returns a kubeconfig with a token of the service account. Its server is a proxy that records every request.
func (i *installation) kubeconfig(p *pod, account string) string {
	i.Helper()
	seconds := int64(3600)
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := i.admin.CoreV1().ServiceAccounts(home).CreateToken(i.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		i.Fatal(err)
	}
	next, err := rest.TransportFor(rest.AnonymousClientConfig(i.config))
	if err != nil {
		i.Fatal(err)
	}
	return fixtures.Proxied(i.T, i.config.Host, next, &clientcmdapi.AuthInfo{Token: token.Status.Token}, func(r *httputil.ProxyRequest) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, r.In.Method+" "+r.In.URL.Path)
	})
}

// read reads the log, which names the addresses.
func (p *pod) read(from io.Reader) {
	defer close(p.ended)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var line struct{ Msg, For, Address string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		p.mu.Lock()
		fmt.Fprintln(&p.output, lines.Text())
		if line.Msg == "listening" {
			p.hears[line.For] = line.Address
		}
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
}

// await asks the process until it answers 200 with a text that matches.
func (p *pod) await(path, want string) {
	p.Helper()
	flag := "--health-address"
	if path == "/metrics" {
		flag = "--metrics-address"
	}
	var last string
	for end := time.Now().Add(fixtures.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-p.ended:
			p.Fatalf("the process ended before %s had %s; it answered:\n%s\n%s", path, want, last, p.log())
		default:
		}
		p.mu.Lock()
		address := p.hears[flag]
		p.mu.Unlock()
		if address == "" {
			continue
		}
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if last = string(body); err == nil && answer.StatusCode == http.StatusOK && regexp.MustCompile(`(?m)`+want).Match(body) {
			return
		}
	}
	p.Fatalf("%s has no %s:\n%s\n%s", path, want, last, p.log())
}

// end ends the process as a kubelet does.
func (p *pod) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

func (p *pod) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

func (p *pod) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}
