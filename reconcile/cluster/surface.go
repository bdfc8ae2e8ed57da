package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A surface lists the kinds that the API server serves.
type surface struct {
	kinds    map[schema.GroupKind]plan.Kind
	versions map[schema.GroupKind][]string // the preferred one first
	listable []schema.GroupKind            // in order
	broken   map[string]error              // groups whose discovery failed

	mu      sync.Mutex
	reading map[schema.GroupKind]string // the version to read a kind in, if it is not the preferred one
}

// discover reads which kinds are served, with one request for /api and one for /apis.
func (c *Cluster) discover(ctx context.Context) (*surface, error) {
	groups, lists, err := c.discovery.ServerGroupsAndResourcesWithContext(ctx)
	s := &surface{
		kinds:    map[schema.GroupKind]plan.Kind{},
		versions: map[schema.GroupKind][]string{},
		broken:   map[string]error{},
	}
	if failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err); partly {
		for gv, err := range failed {
			s.broken[gv.Group] = err
		}
	} else if err != nil {
		return nil, c.explain(err, "read", "what the API server serves")
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

func (s *surface) add(gv schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
		if slices.Contains(s.versions[gk], gv.Version) {
			continue
		}
		s.versions[gk] = append(s.versions[gk], gv.Version)
		if _, preferred := s.kinds[gk]; preferred {
			continue
		}
		s.kinds[gk] = plan.Kind{Version: gv.Version, Resource: r.Name, Namespaced: r.Namespaced, Categories: r.Categories}
		if slices.Contains(r.Verbs, "list") {
			s.listable = append(s.listable, gk)
		}
	}
}

// known returns an error if it is not known whether a kind is served.
func (s *surface) known(gk schema.GroupKind) error {
	if _, served := s.kinds[gk]; served {
		return nil
	}
	if err, broken := s.broken[gk.Group]; broken {
		return fmt.Errorf("it is not known whether %s is served: discovery of its group is incomplete: %w", gk, err)
	}
	return nil
}

// resource returns the resource of a kind, in a version or, for "", in the version to read it in.
func (s *surface) resource(gk schema.GroupKind, version string) (schema.GroupVersionResource, error) {
	k, served := s.kinds[gk]
	switch {
	case !served:
		return schema.GroupVersionResource{}, fmt.Errorf("no API serves the kind %s", gk)
	case version == "":
		version = s.readIn(gk, k.Version)
	case !slices.Contains(s.versions[gk], version):
		return schema.GroupVersionResource{}, fmt.Errorf("the kind %s is not served in version %s, only in %s", gk, version, strings.Join(s.versions[gk], ", "))
	}
	return schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: k.Resource}, nil
}

// readIn returns the version to read a kind in.
func (s *surface) readIn(gk schema.GroupKind, preferred string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.reading[gk], preferred)
}

// reading calls do, which reads or deletes objects of a kind, with the preferred version. If the objects cannot be converted, it
// tries again with the version that they are stored in. Otherwise, a broken conversion webhook would keep its own repair from being
// applied.
func (c *Cluster) reading(ctx context.Context, s *surface, gk schema.GroupKind, do func(gvr schema.GroupVersionResource) error) error {
	gvr, err := s.resource(gk, "")
	if err != nil {
		return err
	}
	if err = do(gvr); err == nil || !saidBy(err).unconverted {
		return err
	}
	crd, unread := c.objects.Resource(definitions).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if unread != nil {
		return err
	}
	versions := readableVersions(crd)
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

func groupKind(id manifest.ID) schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// versionOf returns the version of an apiVersion.
func versionOf(apiVersion string) string {
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}
