package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/artifact"
	"headgate.dev/headgate/render/crossplane"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

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
	name, of := artifactName(*ref, s), NameOf(s)
	objects := client.Resource(ref.Resource()).Namespace(namespace)
	states := &sourceStates{event: in.Event}
	read := func(ctx context.Context) (artifact.Artifact, error) {
		u, err := objects.Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			in.Peers.Missing(of, name)
			return artifact.Artifact{}, states.failed(fmt.Errorf("there is no %s: create it, or install Flux", name))
		case apierrors.IsForbidden(err):
			in.Peers.Missing(of, name)
			return artifact.Artifact{}, states.failed(fmt.Errorf("the service account of the Sync may not get %s: allow it", name))
		case err != nil:
			return artifact.Artifact{}, fmt.Errorf("spec.source.sourceRef: %w", err)
		}
		if isRepository(s) {
			repository, branch := followedBy(u)
			in.Peers.Found(of, repository, branch, problemOf(u))
		}
		a := artifactIn(u)
		if a.URL == "" || a.Revision == "" {
			return a, states.failed(fmt.Errorf("%s has no artifact yet: %w", name, cmp.Or(problemOf(u), errors.New("see 'kubectl describe'"))))
		}
		states.tell(problemOf(u))
		return a, nil
	}
	cache := ""
	if in.Cache != "" {
		cache = filepath.Join(in.Cache, "artifacts")
	}
	return &artifact.Archives{
		Cache: cache, Budget: in.Budget, Name: name, Path: s.Spec.Source.Path, Read: read, Time: s.Spec.Source.FetchTimeout.Duration(), Limits: artifact.Limits{Total: s.Spec.Limits.TotalSize.Bytes()},
	}, nil
}

// isRepository reports whether a source of Flux names the repository of a Sync.
func isRepository(s v1alpha1.Sync) bool {
	return s.Spec.Source.SourceRef != nil && s.Spec.Source.SourceRef.Kind == "GitRepository"
}

// followedBy returns the repository of a GitRepository of Flux, and the branch that it follows, or what it follows instead of one.
func followedBy(u *unstructured.Unstructured) (repository, branch string) {
	url, _, _ := unstructured.NestedString(u.Object, "spec", "url")
	ref, _, _ := unstructured.NestedStringMap(u.Object, "spec", "ref")
	if ref["semver"] != "" {
		ref["semver"] = "semver:" + ref["semver"] // as a Sync writes it
	}
	return repositoryName(url), cmp.Or(ref["commit"], ref["name"], ref["semver"], ref["tag"], ref["branch"], "master") // as Flux prefers them
}

// imageOf is the annotation of an image with the revision of the repository that it was made of.
const imageOf = "org.opencontainers.image.revision"

// artifactIn returns the artifact that the status of an object names. It stays while the source is suspended, or cannot be fetched.
func artifactIn(u *unstructured.Unstructured) artifact.Artifact {
	text := func(field ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, append([]string{"status", "artifact"}, field...)...)
		return value
	}
	return artifact.Artifact{URL: text("url"), Digest: text("digest"), Revision: text("revision"), Origin: text("metadata", imageOf)}
}

// problemOf returns why Flux makes no newer artifact of a source at the moment; nil if it does.
func problemOf(u *unstructured.Unstructured) error {
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended {
		return errors.New("it is suspended in Flux: 'flux resume' lets it fetch again")
	}
	if ready := crossplane.Condition(u, "Ready"); ready.Status == metav1.ConditionFalse {
		return errors.New(cmp.Or(ready.Message, ready.Reason, "its condition Ready is False"))
	}
	return nil
}

// sourceStates tells of the state of a source whenever it changes.
type sourceStates struct {
	event func(reconcile.Event) // may be nil

	mu   sync.Mutex
	told bool
	last string // "" if it was ready
}

// tell tells why a source is not ready; nil if it is.
func (s *sourceStates) tell(problem error) {
	is := ""
	if problem != nil {
		is = problem.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.event == nil || s.told && s.last == is {
		return
	}
	s.told, s.last = true, is
	s.event(reconcile.Event{Kind: reconcile.SourceState, Err: problem})
}

// failed tells why there is no artifact, and returns the error for the field.
func (s *sourceStates) failed(problem error) error {
	s.tell(problem)
	return fmt.Errorf("spec.source.sourceRef: %w", problem)
}

// artifactName returns the name of the source that a Sync names.
func artifactName(ref v1alpha1.SourceRef, s v1alpha1.Sync) string {
	return fmt.Sprintf("%s/%s/%s", ref.Kind, cmp.Or(ref.Namespace, s.Namespace), ref.Name)
}
