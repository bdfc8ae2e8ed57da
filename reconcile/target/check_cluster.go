package target

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/install"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check/kubernetes"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/crossplane/kinds"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// kubeconfig judges the credentials of the kubeconfig. It reads files, but sends no request.
func (i *inspection) kubeconfig(context.Context) (preflight.Result, error) {
	if i.configErr != nil {
		i.down[preflight.Cluster] = true
		if i.Offline {
			return preflight.NotRead(i.configErr), nil
		}
		return preflight.Refused(i.configErr, "name the cluster with --kubeconfig or --context"), nil
	}
	var all []preflight.Result
	for _, e := range expiries(i.config, time.Now()) {
		all = append(all, e.Judge())
	}
	return worst(all...), nil
}

// expiries returns until when the credentials of a configuration are valid. It is not empty.
func expiries(config *rest.Config, now time.Time) []preflight.Expiry {
	var all []preflight.Expiry
	if data := contentOf(config.CertData, config.CertFile); len(data) > 0 {
		all = append(all, certificateExpiry(data, now))
	}
	token := string(contentOf([]byte(config.BearerToken), config.BearerTokenFile))
	if token != "" {
		e := jwtExpiry(token, now)
		e.Renewed = config.BearerTokenFile != ""
		all = append(all, e)
	}
	if len(all) == 0 {
		hidden := "it has no client certificate and no token"
		if config.ExecProvider != nil || config.AuthProvider != nil {
			hidden = "a program gets the credentials"
		}
		all = append(all, preflight.Expiry{Of: "the kubeconfig", Hidden: hidden})
	}
	return all
}

// contentOf returns data or, without any, the content of a file; nothing if it cannot be read, because the first request reports that.
func contentOf(data []byte, file string) []byte {
	if len(data) > 0 || file == "" {
		return data
	}
	data, _ = os.ReadFile(file)
	return data
}

// certificateExpiry returns the expiry of the first certificate.
func certificateExpiry(data []byte, now time.Time) preflight.Expiry {
	const of = "the client certificate of the kubeconfig"
	block, _ := pem.Decode(data)
	if block == nil {
		return preflight.Expiry{Of: of, Hidden: "it is not PEM"}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return preflight.Expiry{Of: of, Hidden: "it cannot be parsed"}
	}
	return preflight.ExpiresAt(of, metav1.NewTime(certificate.NotAfter), metav1.NewTime(now))
}

// jwtExpiry returns the expiry in a token. The signature does not matter: the API server checks it.
func jwtExpiry(token string, now time.Time) preflight.Expiry {
	const of = "the token of the kubeconfig"
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return preflight.Expiry{Of: of, Hidden: "it is no JSON Web Token"}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return preflight.Expiry{Of: of, Hidden: "it is no JSON Web Token"}
	}
	const most = 253402300799 // the year 9999
	switch {
	case claims.Expires == nil:
		return preflight.Expiry{Of: of, Endless: true}
	case !(*claims.Expires >= 0 && *claims.Expires <= most): // also not a number
		return preflight.Expiry{Of: of, Hidden: "its claim exp is no time"}
	}
	return preflight.ExpiresAt(of, metav1.Unix(int64(*claims.Expires), 0), metav1.NewTime(now))
}

func (i *inspection) server(ctx context.Context) (preflight.Result, error) {
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	version, err := c.Release(ctx)
	if err != nil {
		return preflight.Result{}, err
	}
	k := preflight.Kubernetes{Version: version}
	k.Oldest, k.Newest = kubernetes.Maintained()
	return i.forEach(func(s v1alpha1.Spec) preflight.Result {
		k.Set = s.KubernetesVersion
		return k.Judge()
	}), nil
}

// forEach returns the worst result for the Syncs, or the one for none.
func (i *inspection) forEach(judge func(v1alpha1.Spec) preflight.Result) preflight.Result {
	all := []preflight.Result{judge(v1alpha1.Spec{})}
	for _, s := range i.Syncs {
		all = append(all, judge(s.Spec))
	}
	return worst(all...)
}

func (i *inspection) serverClock(context.Context) (preflight.Result, error) {
	return i.clock.judge("the API server"), nil
}

func (i *inspection) crossplane(ctx context.Context) (preflight.Result, error) {
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	found, err := c.Crossplane(ctx)
	if err != nil {
		return preflight.Result{}, err
	}
	found.Known = kinds.Releases()
	if found.Served && found.Version == "" { // without the right to list Deployments, or without the chart
		crds, err := c.CRDs(ctx, kinds.CRDs())
		if err != nil {
			return preflight.Result{}, err
		}
		if found.Version, found.Last = kinds.ReleasesOf(crds); found.Version != "" {
			found.From = "as its CRDs show"
		}
	}
	return i.forEach(func(s v1alpha1.Spec) preflight.Result {
		found.Set, found.Needed = s.CrossplaneVersion, s.CRDOwner == v1alpha1.OwnerCrossplane
		return found.Judge()
	}), nil
}

func (i *inspection) policies(ctx context.Context) (preflight.Result, error) {
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	all, err := c.Policies(ctx)
	return preflight.Policies(all).Judge(), err
}

func (i *inspection) orphans(ctx context.Context) (preflight.Result, error) {
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	all, crds, err := c.Orphans(ctx)
	return preflight.Orphans(all, crds), err
}

// shards judges whether a controller runs the Syncs of each shard.
func (i *inspection) shards(ctx context.Context) (preflight.Result, error) {
	reads, err := cluster.NewInstaller(i.config, words.Of)
	if err != nil {
		return preflight.Result{}, err
	}
	var unwatched []string
	syncs, err := reads.List(ctx, install.SyncKind, "", "")
	if err == nil {
		unwatched, err = install.Run{Cluster: reads}.Unwatched(ctx, syncs)
	}
	if err != nil { // its text may be that of a proxy
		return preflight.Result{}, fmt.Errorf("syncs and Deployments cannot be listed: %s", cmp.Or(string(apierrors.ReasonForError(err)), "no valid answer"))
	}
	return preflight.Shards(unwatched).Judge(len(syncs), install.WatchThem), nil
}

func (i *inspection) wide(ctx context.Context) (preflight.Result, error) {
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	allowed, err := c.Allowed(ctx, preflight.TooWide())
	return preflight.Wide(allowed).Judge(), err
}

func (i *inspection) lease(ctx context.Context) (preflight.Result, error) {
	if i.observes() {
		return preflight.Leave("a Sync that only observes has no lease"), nil
	}
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	l, err := c.Lease(ctx)
	return l.Judge(), err
}

func (i *inspection) observes() bool {
	return i.sync.Spec.ManagementPolicy == v1alpha1.PolicyObservable
}

// rights asks the API server for the rights of this process. The kinds of the commit count if they are known.
func (i *inspection) rights(ctx context.Context) (preflight.Result, error) {
	c, err := i.cluster()
	if err != nil {
		return preflight.Result{}, err
	}
	r := preflight.Rights{Namespace: i.sync.Namespace, Name: i.sync.Name, Secrets: secretNames(i.sync.Spec)}
	served, err := c.Kinds(ctx)
	if err != nil {
		return preflight.Result{}, err
	}
	want, err := i.wanted(ctx)
	if err != nil {
		r.Hidden = err.Error()
	}
	r.Wanted = kindsOf(want, served)
	r.Needs = preflight.ProfileOf(i.observes(), i.owner(want, served), err != nil || makesKinds(want))
	if r.Allowed, err = c.Allowed(ctx, r.Questions()); err != nil {
		return preflight.Result{}, err
	}
	return r.Judge(), nil
}

// makesKinds reports whether a commit contains something that makes a kind.
func makesKinds(want render.Desired) bool {
	return slices.ContainsFunc(want.Objects, func(o render.Object) bool { return preflight.MakesKinds(o.ID) })
}

// secretNames returns the names of the Secrets that fields of a Sync name.
func secretNames(s v1alpha1.Spec) []string {
	refs := []*v1alpha1.SecretRef{s.Source.Verify.KeysFrom, s.Conversion.CAFrom}
	token := func(t *v1alpha1.Token) {
		if t != nil {
			refs = append(refs, t.SecretRef)
		}
	}
	if from := s.Source.CredentialsFrom; from != nil {
		refs = append(refs, from.SecretRef)
	}
	if to := s.Statuses; to != nil {
		token(to.TokenFrom)
		if to.App != nil {
			token(to.App.PrivateKeyFrom)
		}
	}
	if hook := s.Source.Webhook; hook != nil {
		token(hook.SecretFrom)
	}
	var names []string
	for _, ref := range refs {
		if ref != nil && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// owner returns the owner of CRDs that the Sync sets, or that its commit or the cluster shows.
func (i *inspection) owner(want render.Desired, served map[metav1.GroupKind]plan.Kind) render.Owner {
	if set := render.Owner(i.sync.Spec.CRDOwner); set != "" && set != render.OwnerAuto {
		return set
	}
	if _, by := served[metav1.GroupKind(crossplane.KindMRD)]; want.Owner == "" && by {
		return render.OwnerCrossplane
	}
	return want.Owner
}

// kindsOf returns the kinds of a commit that the API server serves, with the namespaces of their objects.
func kindsOf(want render.Desired, served map[metav1.GroupKind]plan.Kind) []preflight.Wanted {
	var all []preflight.Wanted
	at := map[string]int{}
	for _, o := range want.Objects {
		k, ok := served[metav1.GroupKind{Group: o.ID.Group, Kind: o.ID.Kind}]
		if !ok {
			continue // the commit, or a package of it, makes the kind
		}
		key := k.Resource + "." + o.ID.Group
		n, known := at[key]
		if !known {
			n = len(all)
			at[key] = n
			all = append(all, preflight.Wanted{Group: o.ID.Group, Resource: k.Resource})
		}
		namespace := o.ID.Namespace
		if k.Namespaced && namespace == "" {
			namespace = "default"
		}
		if k.Namespaced && !slices.Contains(all[n].Namespaces, namespace) {
			all[n].Namespaces = append(all[n].Namespaces, namespace)
		}
	}
	return all
}
