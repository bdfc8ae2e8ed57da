package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A Surface lists the kinds that the API server serves.
type Surface struct {
	Kinds    map[schema.GroupKind]plan.Kind
	Versions map[schema.GroupKind][]string // the preferred one first
	Listable []schema.GroupKind            // in order
	Broken   map[string]error              // groups whose discovery failed

	mu      sync.Mutex
	reading map[schema.GroupKind]string // the version to read a kind in, if it is not the preferred one
}

// Discover reads which kinds are served, with one request for /api and one for /apis.
func (c *Client) Discover(ctx context.Context) (*Surface, error) {
	asked := newInquiry()
	ctx = context.WithValue(ctx, inquiryKey{}, asked)
	if same := c.discovered.unchanged(ctx, c, asked); same != nil {
		return same, nil
	}
	groups, lists, err := c.Discovery.ServerGroupsAndResourcesWithContext(ctx)
	s := &Surface{
		Kinds:    map[schema.GroupKind]plan.Kind{},
		Versions: map[schema.GroupKind][]string{},
		Broken:   map[string]error{},
	}
	if failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err); partly {
		for gv, err := range failed {
			s.Broken[gv.Group] = err
		}
	} else if err != nil {
		return nil, c.Explain(err, "read", "what the API server serves")
	}
	byVersion := make(map[string]*metav1.APIResourceList, len(lists))
	for _, l := range lists {
		byVersion[l.GroupVersion] = l
	}
	for _, g := range groups {
		for _, version := range inPreference(g) {
			if l := byVersion[version.GroupVersion]; l != nil {
				s.add(schema.GroupVersion{Group: g.Name, Version: version.Version}, l.APIResources)
			}
		}
	}
	c.discovered.keep(s, asked)
	return s, nil
}

// inPreference returns the versions of a group, the preferred one first.
func inPreference(g *metav1.APIGroup) []metav1.GroupVersionForDiscovery {
	versions := slices.Clone(g.Versions)
	slices.SortStableFunc(versions, func(a, b metav1.GroupVersionForDiscovery) int {
		switch g.PreferredVersion.Version {
		case a.Version:
			return -1
		case b.Version:
			return 1
		}
		return 0
	})
	return versions
}

func (s *Surface) add(gv schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
		if slices.Contains(s.Versions[gk], gv.Version) {
			continue
		}
		s.Versions[gk] = append(s.Versions[gk], gv.Version)
		if k, preferred := s.Kinds[gk]; preferred {
			k.Versions = s.Versions[gk]
			s.Kinds[gk] = k
			continue
		}
		s.Kinds[gk] = plan.Kind{Version: gv.Version, Versions: s.Versions[gk], Resource: r.Name, Namespaced: r.Namespaced, Categories: r.Categories}
		if slices.Contains(r.Verbs, "list") {
			s.Listable = append(s.Listable, gk)
		}
	}
}

// Known returns an error if it is not known whether a kind is served.
func (s *Surface) Known(gk schema.GroupKind) error {
	if _, served := s.Kinds[gk]; served {
		return nil
	}
	if err, broken := s.Broken[gk.Group]; broken {
		return fmt.Errorf("it is not known whether %s is served: discovery of its group is incomplete: %w", gk, err)
	}
	return nil
}

// Resource returns the resource of a kind, in a version or, for "", in the version to read it in.
func (s *Surface) Resource(gk schema.GroupKind, version string) (schema.GroupVersionResource, error) {
	k, served := s.Kinds[gk]
	switch {
	case !served:
		return schema.GroupVersionResource{}, fmt.Errorf("no API serves the kind %s", gk)
	case version == "":
		version = s.readIn(gk, k.Version)
	case !slices.Contains(s.Versions[gk], version):
		return schema.GroupVersionResource{}, fmt.Errorf("the kind %s is not served in version %s, only in %s", gk, version, strings.Join(s.Versions[gk], ", "))
	}
	return schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: k.Resource}, nil
}

// readIn returns the version to read a kind in.
func (s *Surface) readIn(gk schema.GroupKind, preferred string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.reading[gk], preferred)
}

// Definitions is the resource of CRDs.
var Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Reading calls do, which reads or deletes objects of a kind, with the preferred version. If the objects cannot be converted, it
// tries again with the version that they are stored in. Otherwise, a broken conversion webhook would keep its own repair from being
// applied.
func (c *Client) Reading(ctx context.Context, s *Surface, gk schema.GroupKind, do func(gvr schema.GroupVersionResource) error) error {
	gvr, err := s.Resource(gk, "")
	if err != nil {
		return err
	}
	if err = do(gvr); err == nil || !saidBy(err).unconverted {
		return err
	}
	crd, unread := c.Objects.Resource(Definitions).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if unread != nil {
		return err
	}
	versions := ReadableVersions(crd)
	if len(versions) == 0 || versions[0] == gvr.Version {
		return err
	}
	s.mu.Lock()
	if s.reading == nil {
		s.reading = map[schema.GroupKind]string{}
	}
	s.reading[gk] = versions[0]
	s.mu.Unlock()
	gvr.Version = versions[0]
	return do(gvr)
}

// GroupKind returns the kind of an object.
func GroupKind(id manifest.ID) schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// VersionOf returns the version of an apiVersion.
func VersionOf(apiVersion string) string {
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}

// ServesCrossplane reports whether the API server serves the API of Crossplane.
func (s *Surface) ServesCrossplane() bool { return facts.ServesCrossplane(s.Kinds) }

// ReadableVersions returns the served versions of a CRD, the storage version first.
func ReadableVersions(crd *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var versions []string
	for _, item := range list {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		switch {
		case v["served"] != true:
		case v["storage"] == true:
			versions = slices.Insert(versions, 0, name)
		default:
			versions = append(versions, name)
		}
	}
	return versions
}
