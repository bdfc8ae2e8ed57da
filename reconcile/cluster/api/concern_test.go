//test:package raced
package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The messages come from a real API server.
func TestTroubleWith(t *testing.T) {
	things := schema.GroupResource{Group: "example.org", Resource: "things"}
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	// written returns the client's error for a response that is not a Status.
	written := func(code int, body string) error {
		return apierrors.NewGenericServerResponse(code, "patch", things, "a", body, 0, true)
	}
	lostAt := func(err error) error { return &url.Error{Op: "Get", URL: "https://kube/api", Err: err} }
	const hook = `failed calling webhook "gate.example.org": failed to call webhook: Post "https://gate.default.svc:443/?timeout=1s": `
	cases := map[string]struct {
		reason string
		err    error
		want   concern
		passes bool // whether the same request may succeed later
	}{
		"WebhookRefused":    {"Nothing listens at the webhook's address.", apierrors.NewInternalError(errors.New(hook + "dial tcp 127.0.0.1:1: connect: connection refused")), withObject, true},
		"WebhookHangs":      {"The webhook is also called for some other objects, but not for all.", apierrors.NewInternalError(errors.New(hook + "context deadline exceeded")), withObject, true},
		"WebhookMissing":    {"The webhook's service does not exist.", apierrors.NewInternalError(errors.New(hook + `service "gate" not found`)), withObject, true},
		"WebhookDenies":     {"It answered.", answer(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "gate.example.org" denied the request: no`), withObject, false},
		"WebhookSaysBusy":   {"The status code comes from the webhook.", answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, `admission webhook "gate.example.org" denied the request: later`), withObject, false},
		"WebhookSaysGone":   {"", answer(http.StatusServiceUnavailable, "", `admission webhook "gate.example.org" denied the request: later`), withObject, false},
		"Conversion":        {"The conversion webhook is called for all objects of the kind.", answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, `conversion webhook for example.org/v1, Kind=Thing failed: Post "https://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused`), withKind, true},
		"CorruptObject":     {"One object cannot be converted, so its kind cannot be listed.", answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, `storage is (re)initializing: failed to list <unspecified>: failed to read one or more things.example.org from the storage`), withKind, false},
		"Invalid":           {"", apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", nil), withObject, false},
		"Forbidden":         {"", apierrors.NewForbidden(things, "a", errors.New("no")), withObject, false},
		"Quota":             {"", answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: resource quota evaluation timed out"), withObject, true},
		"TooLarge":          {"etcd refuses only this object.", apierrors.NewInternalError(errors.New("etcdserver: request is too large")), withObject, false},
		"Unauthorized":      {"The credentials are refused for every object.", apierrors.NewUnauthorized("no"), withServer, false},
		"Busy":              {"", apierrors.NewTooManyRequests("too many requests, please try again later", 1), withServer, true},
		"Unavailable":       {"", apierrors.NewServiceUnavailable("the server is starting"), withServer, true},
		"Timeout":           {"The API server timed out, whatever the request was.", apierrors.NewTimeoutError("request did not complete within requested timeout", 0), withServer, true},
		"ServerTimeout":     {"", apierrors.NewServerTimeout(things, "patch", 0), withServer, true},
		"Balancer":          {"A load balancer found no healthy API server.", written(http.StatusServiceUnavailable, "no healthy upstream"), withServer, true},
		"Gateway":           {"", written(http.StatusBadGateway, "<html>"), withServer, true},
		"GatewayTimeout":    {"", written(http.StatusGatewayTimeout, "<html>"), withServer, true},
		"AggregatedDown":    {"Another API server serves this kind.", written(http.StatusServiceUnavailable, "service unavailable\n"), withKind, false},
		"AggregatedRefuses": {"", answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "error trying to reach service: dial tcp 10.0.0.1:443: connect: connection refused"), withKind, false},
		"LeaderChanged":     {"", answer(http.StatusInternalServerError, "", "etcdserver: leader changed"), withServer, true},
		"NoLeader":          {"", answer(http.StatusInternalServerError, "", "rpc error: code = Unavailable desc = etcdserver: no leader"), withServer, true},
		"Refused":           {"", lostAt(&os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}), withServer, true},
		"Reset":             {"", lostAt(&os.SyscallError{Syscall: "read", Err: syscall.ECONNRESET}), withServer, true},
		"Dropped":           {"", lostAt(io.ErrUnexpectedEOF), withServer, true},
		"Deadline":          {"", lostAt(context.DeadlineExceeded), withServer, false},
		"Unanswered":        {"The request exceeded its deadline.", lostAt(unanswered{request: "GET /api"}), withServer, false},
		"NoRequest":         {"The error happened before anything was sent.", errors.New("cannot encode"), withObject, false},
		"Explained":         {"The error already explains the problem.", lost{fmt.Errorf("cannot reach the API server: %w", errors.New("x509: unknown authority"))}, withServer, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{tc.err, fmt.Errorf("cannot patch Thing a: %w", tc.err)} {
				if got := troubleWith(err); got != tc.want {
					t.Errorf("%s\n%v: trouble with the %s, want the %s", tc.reason, err, got, tc.want)
				}
			}
			if got := IsTransient(tc.err); got != tc.passes {
				t.Errorf("%s\n%v: passes %t, want %t", tc.reason, tc.err, got, tc.passes)
			}
		})
	}
}
