package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A destination is where a Sync applies, and as whom.
type destination struct {
	cluster *rest.Config // all Syncs with the same identity have the same
	home    *rest.Config // the cluster with the Secrets of the Sync, if a kubeconfig describes its cluster
	apart   string       // identifies the cluster that a kubeconfig describes, by any of its addresses; "" is that of the controller
}

// A remote is a cluster that a kubeconfig describes, for a user who may read it.
type remote struct {
	user       string
	kubeconfig [sha256.Size]byte
}

// kubeConfigAge is how long the controller uses a kubeconfig before it reads its Secret again.
const kubeConfigAge = time.Minute

// lookAgain returns when to look at a Sync again although its object does not change; 0 for never.
func lookAgain(s v1alpha1.Sync) time.Duration {
	if s.Spec.KubeConfig == nil {
		return 0
	}
	return kubeConfigAge
}

// soonest returns the shorter of two times, of which 0 is never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// place returns where a Sync applies: the cluster of the controller, as the service account, or the cluster of its kubeconfig, as the
// kubeconfig says.
func (c *controller) place(ctx context.Context, s v1alpha1.Sync) (destination, error) {
	user, err := account(s, c.ServiceAccount, c.own)
	if err != nil {
		return destination{}, err
	}
	if s.Spec.KubeConfig == nil {
		return destination{cluster: c.as(user)}, nil
	}
	to, err := c.remote(ctx, s, user)
	if err != nil {
		return destination{}, err
	}
	return destination{cluster: &to.Config, home: c.as(user), apart: apart(to.identity(ctx), c.here.identity(ctx))}, nil
}

// apart returns what tells a cluster from others, by its identity and that of the controller's cluster.
func apart(there, here string) string {
	switch {
	case there == "", here == "":
		return reconcile.AnyCluster
	case there == here:
		return ""
	}
	return there
}

// A reached is a cluster as a kubeconfig or the controller's own configuration describes it, and what identifies it whatever its address is.
type reached struct {
	rest.Config

	mu    sync.Mutex
	uid   string // "" if it is not known
	again time.Time
}

// identity returns the UID of the namespace kube-system, which is another one in every cluster; "" if the cluster does not answer or does not
// allow to read it. Then it asks again after kubeConfigAge.
func (r *reached) identity(ctx context.Context) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uid == "" && time.Now().After(r.again) {
		r.uid, r.again = uidOf(ctx, &r.Config), time.Now().Add(kubeConfigAge)
	}
	return r.uid
}

// uidOf returns the UID of the namespace kube-system; "" if it cannot be read in a moment.
func uidOf(ctx context.Context, config *rest.Config) string {
	client, err := core.NewForConfig(config)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	system, err := client.Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		slog.Debug("the identity of a cluster cannot be read", "error", err)
		return ""
	}
	return string(system.UID)
}

const identityTime = 3 * time.Second // a Sync whose cluster is away must not stop others for long

// The keys of a Secret with a kubeconfig, as in Flux.
var kubeConfigKeys = []string{"value", "value.yaml"}

// remote returns the configuration for the cluster of a Sync. A user reads its Secret. The same kubeconfig has the same configuration, so
// that Syncs share watches.
func (c *controller) remote(ctx context.Context, s v1alpha1.Sync, user string) (*reached, error) {
	const field = "spec.kubeConfig.secretRef: "
	ref := s.Spec.KubeConfig.SecretRef
	client, err := core.NewForConfig(c.as(user))
	if err != nil {
		return nil, err
	}
	secret, err := client.Secrets(s.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, refuse(v1alpha1.ReasonKubeConfigRefused, field+"there is no Secret %s in %s: create it", ref.Name, s.Namespace)
	case apierrors.IsForbidden(err):
		return nil, refuse(v1alpha1.ReasonKubeConfigRefused, field+"%s may not read the Secret %s in %s: allow it to get that Secret", user, ref.Name, s.Namespace)
	case err != nil:
		return nil, fmt.Errorf(field+"%w", err)
	}
	text := secret.Data[ref.Key]
	for _, key := range kubeConfigKeys {
		if ref.Key == "" && len(text) == 0 {
			text = secret.Data[key]
		}
	}
	if len(text) == 0 {
		return nil, refuse(v1alpha1.ReasonKubeConfigRefused, field+"the Secret %s has nothing under the key %s", ref.Name, cmp.Or(ref.Key, "value"))
	}
	config, err := readKubeConfig(text)
	if err != nil {
		return nil, refuse(v1alpha1.ReasonKubeConfigRefused, field+"the Secret %s: %w", ref.Name, err)
	}
	config.WrapTransport, config.WarningHandler = c.Config.WrapTransport, c.Config.WarningHandler
	return c.remotes.Get(remote{user, sha256.Sum256(text)}, func() *reached { return &reached{Config: *config} }), nil
}

// readKubeConfig returns what a kubeconfig describes. It runs no program and reads no file for it, and refuses connections that someone
// else may read. Its errors contain nothing from the text, which is secret.
func readKubeConfig(text []byte) (*rest.Config, error) {
	all, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("the value is no kubeconfig")
	}
	context := all.Contexts[all.CurrentContext]
	if context == nil {
		return nil, errors.New("the kubeconfig has no current-context that it describes: set it")
	}
	cluster, user := all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, errors.New("the kubeconfig does not describe the cluster or the user of its current-context: add them")
	}
	if err := errors.Join(usable(*cluster), harmless(*user)); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*all, all.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("the kubeconfig is not valid: try it with kubectl")
	}
	return config, nil
}

// usable returns an error for a cluster whose server is not authenticated, or that needs a file.
func usable(c clientcmdapi.Cluster) error {
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Host == "" || server.Scheme != "https":
		return errors.New("the server of the kubeconfig must be an https URL")
	case c.InsecureSkipTLSVerify:
		return errors.New("the kubeconfig has insecure-skip-tls-verify, so anyone could take the place of the server: set certificate-authority-data instead")
	case c.CertificateAuthority != "":
		return errors.New("the kubeconfig names a file as certificate-authority, and files of the controller are not for Syncs: write certificate-authority-data")
	}
	return nil
}

// harmless returns an error for a user whose credentials come from a program or a file.
func harmless(u clientcmdapi.AuthInfo) error {
	const files = "the kubeconfig names a file as %s, and files of the controller are not for Syncs: write %s"
	switch {
	case u.Exec != nil:
		return errors.New("the kubeconfig runs a program (exec) for its credentials, and the controller runs none for a Sync: use a token or a client certificate")
	case u.AuthProvider != nil:
		return errors.New("the kubeconfig has an auth-provider, which the controller does not support: use a token or a client certificate")
	case u.TokenFile != "":
		return fmt.Errorf(files, "tokenFile", "token")
	case u.ClientCertificate != "":
		return fmt.Errorf(files, "client-certificate", "client-certificate-data")
	case u.ClientKey != "":
		return fmt.Errorf(files, "client-key", "client-key-data")
	}
	return nil
}
