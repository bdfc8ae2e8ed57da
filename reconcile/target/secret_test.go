package target

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/certificate"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"
)

const canary = "c4n4ry-t0k3n"

var errBoom = errors.New("boom")

// authority returns a CA certificate in PEM, and its key.
func authority(name string) (cert, key string) {
	c, k := certificate.New(name)
	return string(c), string(k)
}

func TestFollow(t *testing.T) {
	cert, key := authority("one")
	type want struct {
		credentials git.Auth
		token, ca   string // expected values of the referenced keys; "" if an error is expected
		says        []string
	}
	cases := map[string]struct {
		reason string
		ref    v1alpha1.SecretRef
		data   map[string]string // nil if the Secret cannot be read
		want   want
	}{
		"Credentials": {
			reason: "Flux and Kubernetes use these keys for basic authentication.",
			data:   map[string]string{"username": "robot\n", "password": canary + "\n"},
			want:   want{credentials: git.Auth{Username: "robot", Password: canary}, says: []string{`nothing under the key "token"; it has password, username`}},
		},
		"Token": {
			reason: "A trailing line break from an editor is not part of a token.",
			data:   map[string]string{"token": " " + canary + "\n"},
			want:   want{token: canary, says: []string{`nothing under the key "password"`}},
		},
		"OtherKey": {
			reason: "Another tool's Secret may use other keys.",
			ref:    v1alpha1.SecretRef{Key: "pat"},
			data:   map[string]string{"pat": canary, "username": "robot"},
			want:   want{credentials: git.Auth{Username: "robot", Password: canary}, token: canary, says: []string{"not a list of PEM certificates"}},
		},
		"CA": {
			reason: "cert-manager writes a private key into the same Secret, and Headgate must not use it.",
			data:   map[string]string{"ca.crt": cert + "\n" + cert, "tls.key": key},
			want:   want{credentials: git.Auth{CA: cert + "\n" + cert}, ca: cert + "\n" + cert},
		},
		"PrivateKey": {
			reason: "A CA is copied to CRDs, which every user may read, so a private key must not be accepted by mistake.",
			ref:    v1alpha1.SecretRef{Key: "tls.key"},
			data:   map[string]string{"tls.key": cert + key},
			want:   want{credentials: git.Auth{Password: strings.TrimSpace(cert + key)}, token: strings.TrimSpace(cert + key), says: []string{"remove everything that is secret"}},
		},
		"Client": {
			reason: "A server may know its clients by certificates, beside a password or in place of one.",
			data:   map[string]string{"tls.crt": cert, "tls.key": canary},
			want:   want{credentials: git.Auth{Certificate: cert, Key: canary}, says: []string{`nothing under the key "token"`}},
		},
		"ClientWithoutKey": {
			reason: "The key got lost.",
			data:   map[string]string{"tls.crt": cert, "password": canary},
			want:   want{says: []string{`the Secret team/hidden has nothing under the key "tls.key"; it has password, tls.crt`}},
		},
		"Rubbish": {
			reason: "Data after the certificate is also checked.",
			data:   map[string]string{"ca.crt": cert + canary},
			want:   want{credentials: git.Auth{CA: cert + canary}, says: []string{"not a list of PEM certificates"}},
		},
		"Damaged": {
			reason: "The API server would refuse an invalid CA for every CRD.",
			data:   map[string]string{"ca.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
			want:   want{credentials: git.Auth{CA: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, says: []string{"certificate 1 under the key cannot be read"}},
		},
		"Empty":      {reason: "The Secret may not be filled yet.", data: map[string]string{}, want: want{says: []string{"it has no keys"}}},
		"Unreadable": {reason: "The error names the field with the reference, whatever is wrong.", want: want{says: []string{"spec.a.secretRef: boom"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var told []string
			tc.ref.Name = "hidden"
			s := secret{field: "spec.a.secretRef", namespace: "team", ref: tc.ref, tell: func(value string) { told = append(told, value) }}
			s.read = func(_ context.Context, name string) (map[string][]byte, error) {
				if tc.data == nil || name != "hidden" {
					return nil, errBoom
				}
				data := map[string][]byte{}
				for key, value := range tc.data {
					data[key] = []byte(value)
				}
				return data, nil
			}
			credentials, err1 := s.credentials(t.Context())
			if err1 == nil {
				tc.want.credentials.From = "the Secret team/hidden"
			}
			token, err2 := s.token(t.Context())
			ca, err3 := s.ca(t.Context())
			got := want{credentials: credentials, token: token, ca: strings.TrimSuffix(string(ca), "\n"), says: tc.want.says}
			tc.want.ca = strings.TrimSuffix(tc.want.ca, "\n")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			output := fmt.Sprint(err1, err2, err3)
			for _, says := range tc.want.says {
				if !strings.Contains(output, says) {
					t.Errorf("%s\n%q is not said in %s", tc.reason, says, output)
				}
			}
			if strings.Contains(output, canary) {
				t.Errorf("%s\nthe secret is in %s", tc.reason, output)
			}
			if used := credentials.Password + credentials.Key + token; used != "" && !strings.Contains(strings.Join(told, " "), credentials.Password+credentials.Key) {
				t.Errorf("%s\nthe secret is not registered for masking: %q", tc.reason, told)
			}
		})
	}
}

// Every webhook needs the secret, but Headgate rarely reads it from the API server. A sender that disconnects in the meantime does
// no harm.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, value, failure := 0, "one", error(nil)
		var troubles []error
		secret := cached(func(ctx context.Context) (string, error) {
			asked++
			return value, errors.Join(failure, ctx.Err())
		}, func(err error) { troubles = append(troubles, err) })
		expect := func(reason, want string, times int) {
			t.Helper()
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			for range 100 {
				if got, err := secret(gone); got != want && err == nil || asked != times {
					t.Fatalf("%s\n%q (%v) asked for %d times, want %q and %d", reason, got, err, asked, want, times)
				}
			}
		}
		expect("The Secret is read once.", "one", 1)
		value = "two"
		expect("The value is reused for a while.", "one", 1)
		time.Sleep(secretAge)
		expect("The Secret is read again later, because it may have changed.", "two", 2)
		failure = errBoom
		time.Sleep(secretAge)
		expect("An unreadable Secret is not read more often.", "", 3)
		if len(troubles) != 1 || !errors.Is(troubles[0], errBoom) {
			t.Errorf("It is said once: %v", troubles)
		}
		failure = nil
		time.Sleep(secretAge)
		expect("The value is available again once the Secret is readable.", "two", 4)
	})
}

// A Sync without a webhook secret gets no webhooks.
func TestSubscriber(t *testing.T) {
	env := map[string]string{"HEADGATE_WEBHOOK_SECRET": " " + canary + "\n"}
	cases := map[string]struct{ reason, source, want string }{
		"None":    {"A Sync without a webhook gets no subscription.", "repo: a", "none"},
		"Default": {"The variable has a default name, and surrounding whitespace is not part of the secret.", "repo: https://git.example.org/a/b, ref: main, webhook: {}", canary + " main https://git.example.org/a/b"},
		"Absent":  {"Without a secret, no delivery could be verified.", "repo: a, webhook: {secretFrom: {env: NONE}}", "spec.source.webhook.secretFrom.env: the environment has no NONE"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target, err := New(decode(t, "  source: {"+tc.source+"}\n"), Surroundings{Cluster: &rest.Config{}, Getenv: func(name string) string { return env[name] }})
			if err != nil {
				t.Fatalf("It is asked for only where webhooks are heard: %v", err)
			}
			got := "none"
			switch s, err := target.Subscriber(); {
			case err != nil:
				got = err.Error()
			case s != nil:
				secret, err := s.Secret(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = strings.Join(append([]string{secret, s.Ref}, s.Repositories...), " ")
			}
			if got != tc.want {
				t.Errorf("%s\n%q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// After a rotation, conversion webhooks get the new CA. Each pass reads one Secret, and writes nothing while the CA is unchanged.
func TestCAFrom(t *testing.T) {
	config := fixtures.Config(t)
	core1, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core1.Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cafrom"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first, _ := authority("one")
	second, _ := authority("two")
	held := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "webhook-tls"}, Data: map[string][]byte{"ca.crt": []byte(first)}}
	secrets := core1.Secrets("cafrom")
	repository := newRepo(t)
	repository.push(t, "provider/crossplane.yaml", "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-lakes}\n")
	repository.push(t, "provider/crds/lakes.yaml", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lakes.cafrom.example.org}
spec:
  group: cafrom.example.org
  names: {kind: Lake, plural: lakes}
  scope: Cluster
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {path: /convert}}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`)
	s := decode(t, fmt.Sprintf(`  source: {repo: %q}
  crdOwner: Headgate
  conversion: {strategy: Inject, service: {namespace: shop, name: lakes}, caFrom: {name: webhook-tls}}
`, repository.dir))
	s.Namespace, s.Name = "cafrom", "cafrom"
	target, err := New(s, Surroundings{Cluster: config, Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := target.Once(t.Context()); err == nil || !strings.Contains(r.Verdict.Activation.Description, `spec.conversion.caFrom: cannot get the Secret cafrom/webhook-tls: secrets "webhook-tls" not found`) {
		t.Errorf("A Secret that is not there stops the pass before it writes: %+v", r.Verdict)
	}
	if _, err := secrets.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	live, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pass := func(ca string, updated int) {
		t.Helper()
		r, err := target.Once(t.Context())
		if err != nil || r.Summary.Created+r.Summary.Updated != updated {
			t.Fatalf("%d written, want %d: %v\n%+v", r.Summary.Created+r.Summary.Updated, updated, err, r)
		}
		crd, err := live.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Get(t.Context(), "lakes.cafrom.example.org", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		bundle, err := base64.StdEncoding.DecodeString(got)
		if err != nil || strings.TrimSpace(string(bundle)) != strings.TrimSpace(ca) {
			t.Errorf("The CRD has %s (%v), want %s", bundle, err, ca)
		}
	}
	pass(first, 1)
	pass(first, 0)
	held.Data["ca.crt"] = []byte(second)
	if _, err := secrets.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pass(second, 1)
	pass(second, 0)

	// A verb that reads the Sync from a file uses the same CA for its comparison.
	w, err := Wire(s, &git.Repository{URL: repository.dir, Cache: t.TempDir()}, Surroundings{Cluster: config}, How{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if r, err := w.Diff(t.Context(), ""); err != nil || len(r.Steps) > 0 || w.CA == nil {
		t.Errorf("the same CA makes no difference: %v, %+v", err, r.Steps)
	}
}

// As for Flux, users list the public keys in a Secret, each under its own key. A Secret with other content must not count as an
// empty list.
func TestKeysOfSecret(t *testing.T) {
	const one, other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDu1QmhzdvZX2S6DTMYNlB2rLbEYBjXzl3/e3NvaEKEh b"
	for name, tc := range map[string]struct {
		reason string
		ref    v1alpha1.SecretRef
		data   map[string][]byte
		want   []string
		err    string
	}{
		"All":     {reason: "All entries count.", data: map[string][]byte{"b.pub": []byte(other), "a.pub": []byte(one)}, want: []string{one, other}},
		"Named":   {reason: "The Sync names one entry.", ref: v1alpha1.SecretRef{Key: "b.pub"}, data: map[string][]byte{"b.pub": []byte(other), "a.pub": []byte(one)}, want: []string{other}},
		"Missing": {reason: "Without any key, every commit would be refused without a visible reason.", ref: v1alpha1.SecretRef{Key: "c.pub"}, data: map[string][]byte{"a.pub": []byte(one)}, err: "has nothing under the key \"c.pub\"; it has a.pub"},
		"Empty":   {reason: "The same applies to an empty Secret.", err: "no keys"},
		"Private": {reason: "A value that is not a public key must not be quoted.", data: map[string][]byte{"id": []byte("hunter-2")}, err: "key 1: it is neither"},
	} {
		t.Run(name, func(t *testing.T) {
			s := secret{field: "spec.source.verify.keysFrom", namespace: "team", ref: tc.ref, read: func(context.Context, string) (map[string][]byte, error) { return tc.data, nil }}
			got, err := s.keys(t.Context())
			if (err != nil) != (tc.err != "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter-2")) || !slices.Equal(got, tc.want) {
				t.Errorf("%s\nkeys = %q, %v", tc.reason, got, err)
			}
		})
	}
}
