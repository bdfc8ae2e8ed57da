package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// crdWith returns a CRD of Syncs whose spec has fields.
func crdWith(t *testing.T, generation int64, fields ...string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: syncs.headgate.dev, uid: a}
spec:
  group: headgate.dev
  scope: Namespaced
  names: {kind: Sync, plural: syncs, listKind: SyncList, singular: sync}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + strings.Join(fields, ", ") + `}}}}}
`
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetGeneration(generation)
	return &u
}

// checkOf returns the check of a cluster with a CRD, unless that is nil.
func checkOf(t *testing.T, wanted, live *unstructured.Unstructured) (*crdCheck, *metadatafake.FakeMetadataClient) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var objects, names []runtime.Object
	if live != nil {
		objects = append(objects, live)
		of := meta.AsPartialObjectMetadata(live)
		of.TypeMeta = metav1.TypeMeta{APIVersion: live.GetAPIVersion(), Kind: live.GetKind()}
		names = append(names, of)
	}
	cluster := metadatafake.NewSimpleMetadataClient(scheme, names...)
	return &crdCheck{wanted: wanted, dynamic: dynamicfake.NewSimpleDynamicClient(scheme, objects...), metadata: cluster}, cluster
}

// A replica that starts while the API server is away waits for it. Without the right to read the CRD, it ends.
func TestWaitsForCRD(t *testing.T) {
	wanted := crdWith(t, 1, "path: {type: string}")
	for name, tc := range map[string]struct {
		answer error // of the first request
		fails  bool
		says   string
	}{
		"Away":      {errors.New("connection refused"), false, "the API server: "},
		"Timeout":   {apierrors.NewTimeoutError("slow", 1), false, "the API server: "},
		"Forbidden": {apierrors.NewForbidden(crds.GroupResource(), crdOfSyncs, nil), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := checkOf(t, wanted, wanted)
				asked := 0
				cluster.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					asked++
					return asked == 1, nil, tc.answer
				})
				said := ""
				err := c.wait(t.Context(), func(what string) { said = what })
				if (err != nil) != tc.fails || !strings.HasPrefix(said, tc.says) || (said == "") != (tc.says == "") {
					t.Errorf("%v, and it says %q", err, said)
				}
			})
		})
	}
}

// A CRD that lacks a field of this version stops everything, also if it lacks nothing at first.
func TestCRDCheck(t *testing.T) {
	const suspend, path, other = "suspend: {type: boolean}", "path: {type: string}", "other: {type: string}"
	wanted := crdWith(t, 1, suspend, path)
	for name, tc := range map[string]struct {
		reason string
		before *unstructured.Unstructured // which the check has seen
		live   *unstructured.Unstructured
		lacks  string
	}{
		"Same":       {"It has every field.", nil, wanted, ""},
		"Newer":      {"It has more.", nil, crdWith(t, 1, suspend, path, other), ""},
		"Older":      {"It lacks a field.", nil, crdWith(t, 1, path), "spec.suspend"},
		"Downgraded": {"It lacked nothing before.", wanted, crdWith(t, 2, path), "spec.suspend"},
		"Unchanged":  {"Only the generation counts, so the whole CRD is read once.", wanted, crdWith(t, 1, path), ""},
		"Gone":       {"There are no Syncs.", wanted, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := checkOf(t, wanted, tc.live)
			if tc.before != nil {
				c.complete = metav1.ObjectMeta{UID: tc.before.GetUID(), Generation: tc.before.GetGeneration()}
			}
			err := c.err(t.Context())
			incomplete, is := errors.AsType[*incompleteError](err)
			if tc.lacks == "" && err != nil || tc.lacks != "" && (!is || len(incomplete.lacks) != 1 || !strings.HasSuffix(incomplete.lacks[0], tc.lacks)) {
				t.Errorf("%s\n%v, want that it lacks %q", tc.reason, err, tc.lacks)
			}
		})
	}
}
