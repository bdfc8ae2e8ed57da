package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// answerOf returns an HTTP response of an API server.
func answerOf(contentType string, code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}, "Retry-After": {"1"}}, Body: io.NopCloser(bytes.NewReader(body))}
}

// asProtobuf encodes a status as API servers send it to clients that ask for protobuf.
func asProtobuf(tb testing.TB, s metav1.Status) []byte {
	tb.Helper()
	raw, err := s.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}
	data, err := u.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func TestAsRefusal(t *testing.T) {
	cases := map[string]struct {
		reason, message string
		code, want      int32
	}{
		"Denied":        {"The webhook chose the status code.", `admission webhook "gate.example.org" denied the request: no`, 404, 403},
		"Unexplained":   {"The same.", `admission webhook "gate.example.org" denied the request without explanation`, 409, 403},
		"Policy":        {"The policy chose the status code.", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, 413, 403},
		"NamelessInAPI": {"The message for a list contains no name.", `configmaps is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, 413, 403},
		"Gone":          {"The status code comes from the API server itself.", `configmaps "a" not found`, 404, 404},
		"Quoted":        {"The author of an object must not be able to change the status code.", `ConfigMap "a" is invalid: data: Invalid value: "admission webhook \"x\" denied the request": no`, 422, 422},
		"Uncalled":      {"A failed webhook call is another problem.", `Internal error occurred: failed calling webhook "gate.example.org": failed to call webhook: admission webhook "x" denied the request`, 500, 500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: tc.code, Message: tc.message}
			data, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			for contentType, body := range map[string][]byte{"application/json": data, runtime.ContentTypeProtobuf: asProtobuf(t, status)} {
				resp := answerOf(contentType, int(tc.code), body)
				defer resp.Body.Close()
				asRefusal(resp)
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				got, ok := decodeStatus(resp.Header.Get("Content-Type"), body)
				if !ok || got.Code != tc.want || resp.StatusCode != int(tc.want) || got.Message != tc.message {
					t.Errorf("%s\n%s: want %d, got %d, %+v", tc.reason, contentType, tc.want, resp.StatusCode, got)
				}
			}
		})
	}
}

// Only what the API server itself writes at the beginning names a cause. A webhook writes the rest, and could name another webhook,
// which Headgate would then prune before its replacement exists.
func TestGateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    reason.Gate
	}{
		"Webhook":       {`admission webhook "w.example.org" denied the request: because of "other"`, reason.Gate{Webhook: "w.example.org"}},
		"Unreachable":   {`Internal error occurred: failed calling webhook "w.example.org": failed to call webhook: Post "https://x": dial tcp`, reason.Gate{Webhook: "w.example.org"}},
		"Policy":        {`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, reason.Gate{Policy: "p", Binding: "b"}},
		"ByWebhook":     {`admission webhook "w.example.org" denied the request: admission webhook "other.example.org" denied the request: no`, reason.Gate{Webhook: "w.example.org"}},
		"InTheMiddle":   {`ConfigMap "a" is invalid: data: Invalid value: admission webhook "w.example.org" denied the request`, reason.Gate{}},
		"CallInTheEnd":  {`quota: Internal error occurred: failed calling webhook "w.example.org"`, reason.Gate{}},
		"PolicyInValue": {`ConfigMap "a" is invalid: x: configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request`, reason.Gate{}},
		"InName":        {`roles "x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request" is forbidden: user "u" has fewer rights`, reason.Gate{}},
		"AfterName":     {`roles "x\"y" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, reason.Gate{Policy: "p", Binding: "b"}},
		"Quota":         {`roles "new" is forbidden: exceeded quota: few`, reason.Gate{}},
	} {
		c := &Client{}
		err := c.Refusal(&apierrors.StatusError{ErrStatus: metav1.Status{Message: tc.message, Code: 422, Reason: metav1.StatusReasonInvalid}}, "patch", manifest.ID{Kind: "ConfigMap", Name: "a"})
		by, _ := errors.AsType[reason.RefusedError](err)
		if by.By != tc.want {
			t.Errorf("%s: %+v, want %+v", name, by.By, tc.want)
		}
	}
}

// A response that is not a denial must arrive unchanged, whatever an API server or a proxy sends.
func FuzzAsRefusal(f *testing.F) {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 404, Message: `admission webhook "gate.example.org" denied the request: no`}
	data, err := json.Marshal(status)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("application/json", 404, data)
	f.Add(runtime.ContentTypeProtobuf, 409, asProtobuf(f, status))
	f.Add("text/plain", 503, []byte("no healthy upstream"))
	f.Add("application/json; charset=utf-8", 422, []byte(`{"kind":"Status","message":"admission webhook \"`))
	f.Fuzz(func(t *testing.T, contentType string, code int, body []byte) {
		resp := answerOf(contentType, code, body)
		defer resp.Body.Close()
		asRefusal(resp)
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == code && resp.Header.Get("Content-Type") == contentType {
			if !bytes.Equal(got, body) {
				t.Errorf("sent %q, read %q", body, got)
			}
			return
		}
		was, ok := decodeStatus(contentType, body)
		is, still := decodeStatus(resp.Header.Get("Content-Type"), got)
		if _, denied := gateIn(was.Message, denials); !ok || !still || !denied || is.Code != http.StatusForbidden || resp.StatusCode != http.StatusForbidden || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%q became %d %q", body, resp.StatusCode, got)
		}
	})
}
