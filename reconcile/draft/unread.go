package draft

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// unreadPolicies returns a package that Headgate could not read and that may contain policies.
func unreadPolicies(want render.Desired) (catalogue.Unread, bool) {
	i := slices.IndexFunc(want.Unread, func(u catalogue.Unread) bool {
		return slices.ContainsFunc(u.Installers, func(id manifest.ID) bool { return id.Kind == crossplane.Configuration })
	})
	if i < 0 {
		return catalogue.Unread{}, false
	}
	return want.Unread[i], true
}
