package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/preflight"

	"k8s.io/client-go/rest"
)

// A probe is one check about whether passes will work.
type probe struct {
	name  string
	needs []preflight.Need
	// gate is what nothing can be read from if the check fails: then the checks that need it are not asked.
	gate preflight.Need
	docs string
	long bool // it reads, renders or plans a commit, or asks about many rights
	// ask reads and judges. An error means that the answer is not known.
	ask func(*inspection, context.Context) (preflight.Result, error)
}

// ofCluster lists the checks of a cluster, in the order of the report.
var ofCluster = []probe{
	{"kubeconfig", nil, "", "", false, (*inspection).kubeconfig},
	{"API server", []preflight.Need{preflight.Cluster}, preflight.Cluster, "", false, (*inspection).server},
	{"clock of the API server", []preflight.Need{preflight.Cluster}, "", "", false, (*inspection).serverClock},
	{"Crossplane", []preflight.Need{preflight.Cluster}, "", "", false, (*inspection).crossplane},
	{"policies", []preflight.Need{preflight.Cluster}, "", "README.md", false, (*inspection).policies},
	{"owners of CRDs", []preflight.Need{preflight.Cluster}, "", "", false, (*inspection).orphans},
	{"shards", []preflight.Need{preflight.Cluster}, "", "examples/controller/README.md", false, (*inspection).shards},
	{"rights that are too wide", []preflight.Need{preflight.Cluster}, "", "examples/run/README.md", false, (*inspection).wide},
}

// ofSync lists the checks of a Sync, in the order of the report.
var ofSync = []probe{
	{"repository", nil, preflight.Commit, "", true, (*inspection).repository},
	{"registries", []preflight.Need{preflight.Commit, preflight.Registry}, "", "examples/registry/README.md", true, (*inspection).registries},
	{"rights", []preflight.Need{preflight.Cluster}, "", "examples/run/README.md", true, (*inspection).rights},
	{"other owners", []preflight.Need{preflight.Commit, preflight.Cluster}, "", "reconcile/manual/ownership.md", true, (*inspection).owners},
	{"lease", []preflight.Need{preflight.Cluster}, "", "", false, (*inspection).lease},
	{"token of the forge", []preflight.Need{preflight.Forge}, preflight.Forge, "", false, (*inspection).token},
	{"expiry of the token", []preflight.Need{preflight.Forge}, "", "", false, (*inspection).tokenExpiry},
	{"clock of the forge", []preflight.Need{preflight.Forge}, "", "", false, (*inspection).forgeClock},
	{"required status", []preflight.Need{preflight.Forge}, "", "examples/previews/README.md", false, (*inspection).protection},
	{"cluster name", []preflight.Need{preflight.Commit, preflight.Forge}, "", "reconcile/adr/0015-contexts-name-the-namespace.md", false, (*inspection).clusterName},
}

// Checks finds out whether passes will work, before the first one. It changes nothing, in no cluster and on no forge.
type Checks struct {
	Syncs   []v1alpha1.Sync
	Config  func() (*rest.Config, error) // the cluster of the kubeconfig
	Around  Surroundings                 // without a cluster
	Offline bool                         // send no request
	Limit   time.Duration                // of one check; default 20 seconds, and nine times that for a long one
}

// Run makes all checks, one after the other, so that the first cause of a problem is the first result.
func (c Checks) Run(ctx context.Context) []preflight.Result {
	if c.Limit == 0 {
		c.Limit = 20 * time.Second
	}
	if c.Around.Getenv == nil {
		c.Around.Getenv = func(string) string { return "" }
	}
	place := &inspection{Checks: c, down: map[preflight.Need]bool{}}
	place.config, place.configErr = c.Config()
	if place.config != nil {
		place.config = place.clock.config(place.config)
	}
	all := append(place.run(ctx, ofCluster), mixedContexts(c.Syncs)...)
	for _, s := range c.Syncs {
		one := &inspection{Checks: c, sync: &s, down: map[preflight.Need]bool{preflight.Cluster: place.down[preflight.Cluster]}, config: place.config, configErr: place.configErr}
		all = append(all, one.run(ctx, ofSync)...)
		if one.target != nil {
			_ = one.target.Close() // temporary files
		}
	}
	return all
}

// mixedContexts warns of Syncs with statuses of their own beside Syncs of the same cluster and repository that share a pair.
func mixedContexts(syncs []v1alpha1.Sync) (warnings []preflight.Result) {
	posts := map[boardOf]map[v1alpha1.Contexts][]string{}
	for _, s := range syncs {
		if s.Spec.Statuses == nil {
			continue
		}
		at, err := repositoryOf(s.Spec)
		if err != nil {
			continue // New reports it
		}
		of := boardOf{at.Base + "/" + at.String(), s.Spec.ClusterName}
		if posts[of] == nil {
			posts[of] = map[v1alpha1.Contexts][]string{}
		}
		posts[of][s.Spec.Statuses.Contexts] = append(posts[of][s.Spec.Statuses.Contexts], s.Namespace+"/"+s.Name)
	}
	for of, by := range posts {
		own, shared := by[v1alpha1.ContextsSync], by[v1alpha1.ContextsCluster]
		if len(own) == 0 || len(shared) == 0 {
			continue
		}
		r := preflight.MixedContexts(of.cluster, own, shared)
		r.Check, r.Docs = "contexts of statuses", "examples/run/README.md"
		warnings = append(warnings, r)
	}
	slices.SortFunc(warnings, func(a, b preflight.Result) int { return strings.Compare(a.Message, b.Message) })
	return warnings
}

// An inspection is the state of the checks of a cluster, or of a Sync.
type inspection struct {
	Checks

	sync      *v1alpha1.Sync // nil for the cluster
	down      map[preflight.Need]bool
	config    *rest.Config
	configErr error
	clock     clock // of the API server

	target *Target // reads the commit; nil before
	commit checkedCommit
	forge  forgeFacts
}

// run makes the checks of a list.
func (i *inspection) run(ctx context.Context, list []probe) []preflight.Result {
	all := make([]preflight.Result, len(list))
	for n, one := range list {
		r := i.answer(ctx, one)
		r.Check = one.name
		if i.sync != nil {
			r.Sync = i.sync.Namespace + "/" + i.sync.Name
		}
		if r.Status == preflight.Failed || r.Status == preflight.Warning {
			r.Docs = one.docs
		}
		i.down[one.gate] = i.down[one.gate] || one.gate != "" && r.Status == preflight.Failed
		all[n] = r
	}
	return all
}

// answer makes one check within its limit.
func (i *inspection) answer(ctx context.Context, one probe) preflight.Result {
	if i.Offline && len(one.needs) > 0 {
		return preflight.Leave("--offline: it reads the %s", one.needs[len(one.needs)-1])
	}
	for _, need := range one.needs {
		if i.down[need] {
			return preflight.NotRead(fmt.Errorf("it needs the %s, which cannot be read", need))
		}
	}
	limit := i.Limit
	if one.long {
		limit *= 9
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	r, err := one.ask(i, ctx)
	if err == nil {
		return r
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if one.gate != "" {
		return preflight.Refused(err, "")
	}
	return preflight.NotRead(err)
}

// cluster returns the cluster as the Sync sees it.
func (i *inspection) cluster() (*cluster.Cluster, error) {
	if i.configErr != nil {
		return nil, i.configErr
	}
	of := inventory.Sync{Namespace: v1alpha1.DefaultNamespace, Name: "default"}
	if i.sync != nil {
		of = inventory.Sync{Namespace: i.sync.Namespace, Name: i.sync.Name}
	}
	return cluster.New(i.config, of, cluster.Options{AnswerTime: i.Limit})
}

// worst returns the result that needs attention first, or the first one.
func worst(all ...preflight.Result) preflight.Result {
	for _, status := range preflight.Statuses {
		if n := slices.IndexFunc(all, func(r preflight.Result) bool { return r.Status == status }); n >= 0 {
			return all[n]
		}
	}
	return preflight.Result{}
}

// forgeFacts is what the checks of a forge share.
type forgeFacts struct {
	clock     clock
	inspector *forge.Inspector
	token     preflight.Token
	none      error // why there is no inspector
}

// errNoStatuses means that the Sync posts nothing.
var errNoStatuses = errors.New("the Sync has no statuses")

// account returns the account that posts for the Sync.
func (i *inspection) account() (*forge.Inspector, error) {
	if i.forge.inspector != nil || i.forge.none != nil {
		return i.forge.inspector, i.forge.none
	}
	i.forge.inspector, i.forge.none = func() (*forge.Inspector, error) {
		var reads Cluster
		if c, err := i.cluster(); err == nil {
			reads = c
		}
		a, err := account(*i.sync, i.Around, secretsOf(*i.sync, reads, i.Around))
		if err != nil {
			return nil, err
		}
		a.Transport = i.forge.clock.transport(network.Default)
		return a.Inspector()
	}()
	return i.forge.inspector, i.forge.none
}

// branch returns the branch that the Sync follows, and reports whether it follows one. "" is the default branch.
func branch(ref string) (string, bool) {
	if name, full := strings.CutPrefix(ref, "refs/heads/"); full {
		return name, true
	}
	return ref, !strings.HasPrefix(ref, "refs/")
}
