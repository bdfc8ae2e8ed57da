// Command by-hand does in the demo what a user does with kubectl and a browser, so that the demo needs neither.
//
//	by-hand edit crd|policy NAME PATCH  changes an object of the cluster of $KUBECONFIG
//	by-hand crossplane DIRECTORY CRDS  prepares the cluster for Crossplane, as its chart does; its certificates are in DIRECTORY
//	by-hand statuses REPO COMMIT TEXT  what Gitea shows of a commit, oldest first, once a status says TEXT
//	by-hand port                     a port that is free
//	by-hand token                    a random token
//	by-hand key                      a new private key, in PEM
//	by-hand ready                    fails until the API server of $KUBECONFIG is ready
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "by-hand:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	switch {
	case len(args) == 4 && args[0] == "edit" && editable[args[1]].Group != "":
		return edit(ctx, editable[args[1]], args[2], args[3])
	case len(args) == 3 && args[0] == "crossplane":
		return crossplane(ctx, args[1], args[2])
	case len(args) == 4 && args[0] == "statuses":
		return statuses(ctx, out, args[1], args[2], args[3])
	case len(args) == 1 && args[0] == "port":
		return port(ctx, out)
	case len(args) == 1 && args[0] == "token":
		_, err := fmt.Fprintln(out, rand.Text())
		return err
	case len(args) == 1 && args[0] == "key":
		return key(out)
	case len(args) == 1 && args[0] == "ready":
		return ready(ctx)
	}
	return errors.New("usage: by-hand edit crd|policy NAME PATCH | crossplane DIRECTORY CRDS | statuses REPO COMMIT TEXT | port | token | key | ready")
}

// key writes a key for the tokens of service accounts.
func key(out io.Writer) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return err
	}
	return pem.Encode(out, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// ready returns an error until the API server is ready.
func ready(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// editable are the kinds that a user edits in the demo.
var editable = map[string]schema.GroupVersionResource{
	"crd":    {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"policy": {Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourceactivationpolicies"},
}

// edit changes an object as kubectl edit does: kubectl-edit then manages the fields.
func edit(ctx context.Context, kind schema.GroupVersionResource, name, patch string) error {
	client, err := cluster()
	if err != nil {
		return err
	}
	_, err = client.Resource(kind).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	return err
}

// cluster returns a client of the cluster of $KUBECONFIG.
func cluster() (dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// A status is what Gitea shows of a commit in one context.
type status struct {
	ID                           int64
	Context, Status, Description string
}

// statuses prints the statuses of a commit once one of them says a text: a loop posts them after its pass. repo is the URL of its clone; the
// token in $HEADGATE_FORGE_TOKEN must be allowed to read it.
func statuses(ctx context.Context, out io.Writer, repo, commit, text string) error {
	for { // until the time of the program ends
		all, err := statusesOf(ctx, repo, commit)
		switch {
		case err != nil:
			return err
		case slices.ContainsFunc(all, func(s status) bool { return s.Description == text }):
			for _, s := range all {
				if _, err := fmt.Fprintf(out, "%-8s %s  %s\n", s.Status, s.Context, s.Description); err != nil {
					return err
				}
			}
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// statusesOf returns the statuses of a commit, oldest first.
func statusesOf(ctx context.Context, repo, commit string) ([]status, error) {
	at, err := url.Parse(strings.TrimSuffix(repo, ".git"))
	if err != nil {
		return nil, err
	}
	at.Path, at.RawQuery = "/api/v1/repos"+at.Path+"/commits/"+commit+"/statuses", "limit=50"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil) //nolint:gosec // the user names the address
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "token "+os.Getenv("HEADGATE_FORGE_TOKEN"))
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // there
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s of commit %s: %s", repo, commit, resp.Status)
	}
	var all []status
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b status) int { return int(a.ID - b.ID) })
	return all, nil
}

// port prints a free port on loopback.
func port(ctx context.Context, out io.Writer) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	_, number, err := net.SplitHostPort(l.Addr().String())
	if err == nil {
		_, err = fmt.Fprintln(out, number)
	}
	return err
}
