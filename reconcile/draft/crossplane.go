package draft

import (
	"encoding/json"
	"strings"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ofCrossplane returns what will serve a kind of Crossplane itself in a cluster without Crossplane: an object of the commit that
// installs Crossplane. No package can.
func (c *coming) ofCrossplane(gk schema.GroupKind) (need, error) {
	if c.core == nil {
		core, err := installerOf(c.want)
		if err != nil {
			return need{}, err
		}
		c.core = &core
	}
	if *c.core == (manifest.ID{}) {
		return need{}, reason.CodedError{Reason: reason.CrossplaneAbsent.With(gk.String())}
	}
	return need{waits: []reason.Reason{reason.CrossplaneComes.With(*c.core, gk.String())}, on: []manifest.ID{*c.core}}, nil
}

// installerOf returns the first object of a commit that may install Crossplane; the zero ID if there is none.
func installerOf(want render.Desired) (manifest.ID, error) {
	for _, o := range want.Objects {
		if installs, err := installsCrossplane(o); installs || err != nil {
			return o.ID, err
		}
	}
	for _, o := range want.Omitted { // another tool applies it
		if installers[o.ID.GroupKind()] && strings.Contains(o.ID.Name, "crossplane") {
			return o.ID, nil
		}
	}
	return manifest.ID{}, nil
}

// installers lists the kinds of objects that install programs.
var installers = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:                    true,
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}: true,
	{Group: "helm.cattle.io", Kind: "HelmChart"}:           true,
	{Group: "argoproj.io", Kind: "Application"}:            true,
}

// installsCrossplane reports whether an object may install Crossplane: it is a CRD of its package manager, or installs a program and
// mentions Crossplane.
func installsCrossplane(o render.Object) (bool, error) {
	if crossplane.IsPackageCRD(o.ID) || !installers[o.ID.GroupKind()] {
		return crossplane.IsPackageCRD(o.ID), nil
	}
	u, err := o.Content()
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(u.Object)
	return strings.Contains(string(text), "crossplane"), err
}
