package kubernetes_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Our scheme is that of client-go.
func TestScheme(t *testing.T) {
	s := source(t, "")
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		f, has := of.FieldByName("ObjectMeta")
		if !has || !f.Anonymous || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if k, known := s.Kind(gvk.GroupKind()); !known || !slices.Contains(k.Versions(), gvk.Version) {
			t.Errorf("%s is not known", gvk)
		}
	}
}

// What server-side apply cannot read has a problem, and an object without problems can be read.
func FuzzCheck(f *testing.F) {
	kinds := []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Version: "v1", Kind: "Namespace"}, {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	}
	for i, text := range []string{
		"data: {a: b, c: 1}", "data: {a: aHVudGVyMg==}\nstringData: {b: hunter2}\ntype: Opaque", "spec: {ports: [{port: 80}, {port: 80, protocol: UDP}, {port: 80}], clusterIPs: [a, a]}",
		"spec: {containers: [{name: a, image: b, args: [x, x], env: [{name: X}, {name: X}]}], tolerations: [{}], terminationGracePeriodSeconds: 1.0}",
		"spec: {replicas: 1e3, template: {metadata: {labels: {a: b}, creationTimestamp: null}, spec: {containers: [{name: a, resources: {limits: {cpu: 1.5, memory: 1x}}}], volumes: [{name: a, emptyDir: {}}, null]}}}",
		"spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}, volumeClaimTemplates: [{metadata: {name: a}}]}",
		"spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {}}}}\nmetadata: {name: b, finalizers: [a.b/c, a.b/c]}", "spec: {rules: [{host: a}, {host: a}], tls: [{hosts: [a, a]}]}",
		"roleRef: {kind: Role, name: a}\nsubjects: [{kind: User, name: b}, {kind: User, name: b}]", "spec: {finalizers: [kubernetes, kubernetes]}\nmetadata: {ownerReferences: [{uid: a}, {uid: a}]}",
		"spec: {metrics: [{type: Resource}], behavior: {scaleUp: {policies: []}}}", "webhooks: [{name: a, clientConfig: {caBundle: '%'}, rules: [{operations: [CREATE, CREATE]}], failurePolicy: 3}]",
	} {
		f.Add(text, i)
	}
	s := source(f, "1.37")
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	f.Fuzz(func(t *testing.T, text string, i int) {
		gvk := kinds[uint(i)%uint(len(kinds))]
		var o unstructured.Unstructured
		if strings.Contains(text, "!") || yaml.Unmarshal([]byte(text), &o.Object) != nil || o.Object == nil {
			t.Skip()
		}
		o.SetGroupVersionKind(gvk)
		if o.Object["metadata"] == nil {
			o.SetName("a")
		}
		kind, _ := s.Kind(gvk.GroupKind())
		before := o.DeepCopy()
		found := len(s.Every(&o, kind).Errors) + len(kind.Check(&o).Errors)
		if !reflect.DeepEqual(before.Object, o.Object) {
			t.Errorf("a check changes the object:\n%s", text)
		}
		if _, err := converter.ObjectToTyped(&o); err != nil && found == 0 {
			t.Errorf("server-side apply cannot read what has no problem: %v\n%s", err, text)
		}
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil && found == 0 {
			t.Errorf("Go cannot read what has no problem: %v\n%s", err, text)
		}
	})
}
