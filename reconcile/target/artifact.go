package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/artifact"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// pollOfFlux is how often the status of a source of Flux is read, unless the Sync says. That is a small request to the API server.
const pollOfFlux = 10 * time.Second

// pollOf returns the time between looks for a new commit; 0 for those of passes.
func pollOf(s v1alpha1.Source) time.Duration {
	poll := s.Interval.Duration()
	if poll == 0 && s.SourceRef != nil {
		return pollOfFlux
	}
	return poll
}

// artifactOf returns the Source of a Sync that names a source of Flux; nil if it names a repository. The identity of the Sync reads the
// object, beside the Sync.
func artifactOf(s v1alpha1.Sync, in Surroundings) (*artifact.Archives, error) {
	ref := s.Spec.Source.SourceRef
	if ref == nil {
		return nil, nil
	}
	home := cmp.Or(in.Secrets, in.Cluster)
	if home == nil {
		return nil, errors.New("spec.source.sourceRef: there is no cluster to read it from")
	}
	client, err := dynamic.NewForConfig(home)
	if err != nil {
		return nil, err
	}
	namespace := cmp.Or(ref.Namespace, s.Namespace)
	name := fmt.Sprintf("%s/%s/%s", ref.Kind, namespace, ref.Name)
	objects := client.Resource(schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: v1alpha1.SourceKinds[ref.Kind]}).Namespace(namespace)
	read := func(ctx context.Context) (artifact.Artifact, error) {
		u, err := objects.Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return artifact.Artifact{}, fmt.Errorf("spec.source.sourceRef: there is no %s: create it, or install Flux", name)
		case apierrors.IsForbidden(err):
			return artifact.Artifact{}, fmt.Errorf("spec.source.sourceRef: the service account of the Sync may not get %s: allow it", name)
		case err != nil:
			return artifact.Artifact{}, fmt.Errorf("spec.source.sourceRef: %w", err)
		}
		return artifactIn(u, name)
	}
	return &artifact.Archives{
		Name: name, Path: s.Spec.Source.Path, Read: read, Time: s.Spec.Source.FetchTimeout.Duration(), Limits: artifact.Limits{Total: s.Spec.Limits.TotalSize.Bytes()},
	}, nil
}

// imageOf is the annotation of an image with the revision of the repository that it was made of.
const imageOf = "org.opencontainers.image.revision"

// artifactIn returns the artifact that the status of an object names. It stays while a later fetch of the source fails.
func artifactIn(u *unstructured.Unstructured, name string) (artifact.Artifact, error) {
	text := func(field ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, append([]string{"status", "artifact"}, field...)...)
		return value
	}
	a := artifact.Artifact{URL: text("url"), Digest: text("digest"), Revision: text("revision"), Origin: text("metadata", imageOf)}
	if a.URL == "" || a.Revision == "" {
		return a, fmt.Errorf("spec.source.sourceRef: %s has no artifact yet: see 'kubectl describe'", name)
	}
	return a, nil
}
