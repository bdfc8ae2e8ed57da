package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
)

// Policies are the activation policies of a cluster, by name.
type Policies map[string]crossplane.LivePolicy

// Judge finds policies that activate every definition.
func (p Policies) Judge() Result {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if slices.Contains(p[name].Wildcards(), "*") {
			all = append(all, name)
		}
	}
	switch {
	case slices.Contains(all, "default"):
		return warn("helm upgrade … --set provider.defaultActivations={}, then kubectl delete mrap default; without the first, Crossplane creates it again at its next start",
			"the policy default of Crossplane activates every definition of every package, whatever Git lists")
	case len(all) > 0:
		return warn("name the definitions that the platform uses", "%s %s: every definition of every package is active", counted(len(all), "policy activates *:", "policies activate *:"), list(all))
	}
	return fine("no policy activates every definition (%s)", counted(len(p), "policy", "policies"))
}

// CommitRead judges a commit that was read.
func CommitRead(revision string) Result {
	if revision == "" {
		return fine("the directory can be read")
	}
	return fine("commit %.12s can be read", revision)
}

// Holds are the objects of a commit that a pass would not apply, because another tool or controller owns them. Each is the object
// and the reason.
type Holds []string

// Judge judges the holds of the plan of a pass.
func (h Holds) Judge(objects int) Result {
	if len(h) == 0 {
		return fine("no other tool owns one of the %s of the commit", counted(objects, "object", "objects"))
	}
	return warn("have the other tool release them, or set spec.adoption", "a pass would hold %d of %s, which another tool owns: %s", len(h), counted(objects, "object", "objects"), list(h))
}

// An Orphan is a CRD whose owner does not exist.
type Orphan struct{ CRD, Owner string }

// Orphans judges CRDs whose owners do not exist. most is set if only the first CRDs were read.
func Orphans(all []Orphan, crds int) Result {
	if len(all) == 0 {
		return fine("the owners of all %s exist", counted(crds, "CRD", "CRDs"))
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = fmt.Sprintf("%s (%s)", o.CRD, o.Owner)
	}
	return warn("remove these owner references: the garbage collector of Kubernetes may delete each CRD with all of its objects, and Crossplane does not take it over",
		"%s an owner that does not exist: %s", counted(len(all), "CRD has", "CRDs have"), list(names))
}

// Shards are lines about Sync objects whose shard no controller runs.
type Shards []string

// Judge judges whether every shard has a controller. do is what a person should do otherwise.
func (s Shards) Judge(syncs int, do string) Result {
	switch {
	case syncs == 0:
		return fine("the cluster has no Sync objects")
	case len(s) == 0:
		return fine("no Sync object has the key of a shard that no Deployment watches")
	}
	return warn(do, "%s", strings.Join(s, "; "))
}

// A Lease is the lease of a Sync. All times are in seconds.
type Lease struct {
	Exists   bool
	Holder   string
	Age      int64 // since the last renewal, by the clock of this machine
	Duration int64
	Undated  bool // it has no time or duration
}

// Judge judges whether another process applies the Sync.
func (l Lease) Judge() Result {
	switch {
	case !l.Exists:
		return fine("no process has applied this Sync yet")
	case l.Holder == "":
		return fine("no process applies this Sync now")
	case l.Undated:
		return fine("the lease names %s, and has no time: the next pass takes it", quoted(l.Holder))
	case l.Age < -clockSkew:
		return unknown("compare the clocks of both machines", "%s holds the lease, and renewed it %s in the future", quoted(l.Holder), span(-l.Age))
	case l.Age <= l.Duration:
		return warn("stop one of them; or leave it, because only the process that holds the lease writes", "another process applies this Sync: %s, which renewed its lease %s ago", quoted(l.Holder), span(max(0, l.Age)))
	}
	return fine("%s held the lease and did not renew it for %s: the next pass takes it", quoted(l.Holder), span(l.Age))
}

// quoted returns a text of another process, shortened.
func quoted(s string) string {
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return fmt.Sprintf("%q", s)
}
