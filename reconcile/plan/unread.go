package plan

import (
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// Wildcards returns the patterns of a policy that may match definitions that nobody knows.
func (p LivePolicy) Wildcards() []string {
	if p.Paused {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Patterns), func(glob string) bool {
		_, malformed := path.Match(glob, "")
		return malformed != nil || !strings.ContainsAny(glob, `*?[\`)
	})
}

// unreadPolicies returns a package that Headgate could not read and that may hold policies.
func unreadPolicies(want render.Desired) (catalogue.Unread, bool) {
	i := slices.IndexFunc(want.Unread, func(u catalogue.Unread) bool {
		return slices.ContainsFunc(u.Installers, func(id manifest.ID) bool { return id.Kind == "Configuration" })
	})
	if i < 0 {
		return catalogue.Unread{}, false
	}
	return want.Unread[i], true
}
