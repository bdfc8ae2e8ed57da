package preflight

import (
	"slices"
	"strings"
)

// A Token is what a forge reports about a token.
type Token struct {
	Forge    string   // its name
	Scopes   []string // nil if the forge does not report them
	Enough   []string // scopes, each of which allows to post statuses
	MayWrite bool     // its user, or the App, may write to the repository
	Shown    bool     // the forge reports MayWrite
	Right    string   // what a token needs, in the words of the forge
	Expiry   Expiry
}

// Judge judges whether the token can post statuses.
func (t Token) Judge() Result {
	enough := slices.ContainsFunc(t.Enough, func(one string) bool { return slices.Contains(t.Scopes, one) })
	switch {
	case t.Scopes != nil && !enough:
		return fail("give it "+t.Right, "the token of %s has the scopes %s, and cannot post statuses", t.Forge, orNone(t.Scopes))
	case t.Shown && !t.MayWrite:
		return fail("give it "+t.Right, "the token of %s may read the repository, but not write to it", t.Forge)
	case t.Scopes == nil && !t.Shown:
		return unknown("see that it has "+t.Right, "%s accepts the token, and does not report what it may do", t.Forge)
	case t.Scopes == nil:
		return unknown("see that it has "+t.Right, "%s accepts the token, whose user may write to the repository, and does not report its scopes", t.Forge)
	}
	return fine("%s accepts the token; its scopes are %s", t.Forge, orNone(t.Scopes))
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return list(words)
}

// A Protection is which statuses a branch requires before a merge.
type Protection struct {
	Branch   string
	Required []string // contexts
	Globs    bool     // the contexts are patterns, in which * matches everything
	Pipeline bool     // every status of a commit counts, also those of Headgate
	Posts    string   // the context that the Sync posts on heads of pull requests; empty if it posts none
	Later    []string // the contexts that it posts on commits of the branch
}

// Judge judges whether the status that the branch requires is the one that the Sync posts.
func (p Protection) Judge() Result {
	if p.Pipeline && p.Posts != "" {
		return fine("a merge into %s needs every status of the pull request, so also %s", p.Branch, p.Posts)
	}
	matches := func(context string) bool {
		return context != "" && slices.ContainsFunc(p.Required, func(one string) bool { return p.matches(one, context) })
	}
	late := slices.IndexFunc(p.Later, func(one string) bool { return slices.Contains(p.Required, one) })
	others := slices.DeleteFunc(slices.Clone(p.Required), func(one string) bool {
		return !strings.HasPrefix(one, "headgate/") || p.Posts != "" && p.matches(one, p.Posts)
	})
	switch {
	case late >= 0:
		return fail("require "+orPreview(p.Posts)+" instead", "a merge into %s needs the status %s, which Headgate posts only after the merge: no pull request can be merged", p.Branch, p.Later[late])
	case len(others) > 0:
		return warn("see that a pipeline or another process posts it; this Sync posts "+orPreview(p.Posts), "a merge into %s needs the status %s, which this Sync does not post", p.Branch, list(others))
	case matches(p.Posts):
		return fine("a merge into %s needs the status %s, which this Sync posts", p.Branch, p.Posts)
	case p.Posts != "":
		return warn("require the status "+p.Posts, "a merge into %s does not need the status %s: a pull request can be merged although its preview is blocked", p.Branch, p.Posts)
	}
	return fine("a merge into %s needs no status of Headgate, and this Sync posts none on pull requests", p.Branch)
}

func orPreview(context string) string {
	if context == "" {
		return "no status on pull requests (spec.previews)"
	}
	return context
}

// matches reports whether a required context is the given one, or a pattern that matches it.
func (p Protection) matches(required, context string) bool {
	parts := strings.Split(required, "*")
	if !p.Globs || len(parts) == 1 {
		return required == context
	}
	rest, found := strings.CutPrefix(context, parts[0])
	for _, part := range parts[1 : len(parts)-1] {
		if !found {
			return false
		}
		_, rest, found = strings.Cut(rest, part)
	}
	return found && strings.HasSuffix(rest, parts[len(parts)-1])
}

// Posted are the statuses of one context on the newest commit of a branch.
type Posted struct {
	Context string
	By      []string // the accounts that posted it, without repetition; "" if the forge does not report that
	Applied bool     // this cluster has an inventory of the Sync
	Looks   bool     // the Sync only observes, so there is no inventory
	Commit  string
}

// Judge judges whether another cluster posts under the same name.
func (p Posted) Judge() Result {
	const do = "give each cluster its own spec.clusterName"
	switch {
	case len(p.By) == 0:
		return fine("no process has posted %s on the newest commit", p.Context)
	case len(p.By) > 1:
		return warn(do, "%s post the status %s: %s; another cluster may have the same clusterName", counted(len(p.By), "account", "accounts"), p.Context, list(p.By))
	case !p.Applied && !p.Looks:
		return warn(do+"; or ignore this if the cluster was made anew", "commit %.12s has the status %s already, and this cluster has no inventory of the Sync: another cluster posts under the same name", p.Commit, p.Context)
	}
	return fine("one account posts the status %s", p.Context)
}

// A Pulled is an image that a commit names, and why it could not be read.
type Pulled struct {
	Image, Host string
	Err         string // empty if it was read
}

// Packages judges the registries of a commit.
func Packages(all []Pulled) Result {
	var hosts, bad []string
	for _, p := range all {
		if !slices.Contains(hosts, p.Host) {
			hosts = append(hosts, p.Host)
		}
		if p.Err != "" {
			bad = append(bad, p.Image+": "+p.Err)
		}
	}
	slices.Sort(hosts)
	switch {
	case len(all) == 0:
		return fine("the commit names no package in a registry")
	case len(bad) > 0:
		return fail("repair the access: docker login, or a pull secret that an ImageConfig or the package names", "%d of %s cannot be read: %s", len(bad), counted(len(all), "package", "packages"), list(bad))
	}
	return fine("%s of %s can be read", counted(len(all), "package", "packages"), list(hosts))
}

// MixedContexts warns of Syncs with statuses of their own beside Syncs of the same cluster that share one pair.
func MixedContexts(cluster string, own, shared []string) Result {
	return warn("set statuses.contexts: Cluster in all of them, or in none",
		"the status headgate/%s/activation, which %s, is green without %s", cluster, plural(shared, "posts", "post together"), list(own))
}

// plural returns some names with a verb.
func plural(names []string, one, many string) string {
	if len(names) == 1 {
		return names[0] + " " + one
	}
	return list(names) + " " + many
}
