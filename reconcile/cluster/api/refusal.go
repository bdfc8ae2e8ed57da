package api

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"

	"headgate.dev/headgate/reconcile/reason"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// asRefusal sets the code of an answer to 403 if an admission webhook or policy denied the request. The API server passes on the
// code that its author chose, which does not have its usual meaning: 404 does not mean that the object is gone, 409 that another
// writer was faster, 429 that the API server is busy, or 413 that the object is too large.
func asRefusal(resp *http.Response) {
	if !saidIn(peek(resp)).refused {
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		resp.Body = readCloser{broken{err}, resp.Body}
		return
	}
	answer := bytes.NewReader(body)
	status, ok := decodeStatus(resp.Header.Get("Content-Type"), body)
	if _, denied := gateIn(status.Message, denials); ok && denied {
		status.Code, status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
		if data, err := json.Marshal(status); err == nil {
			answer = bytes.NewReader(data)
			resp.StatusCode, resp.Status = http.StatusForbidden, "403 Forbidden"
			resp.Header.Set("Content-Type", "application/json")
			resp.Header.Set("Content-Length", strconv.Itoa(len(data)))
			resp.Header.Del("Retry-After")
			resp.ContentLength = int64(len(data))
		}
	}
	resp.Body = readCloser{answer, resp.Body}
}

// gateIn returns the admission webhook or policy that an API server's message names in one of the given sentences, and whether it
// names one. The sentences are at the beginning: text of other authors that follows in the message does not count. No other words of
// an API server decide anything.
func gateIn(message string, sentences []*regexp.Regexp) (reason.Gate, bool) {
	for _, like := range sentences {
		found := like.FindStringSubmatch(message)
		if found == nil {
			continue
		}
		named := func(group string) string {
			if i := like.SubexpIndex(group); i >= 0 {
				return found[i]
			}
			return ""
		}
		return reason.Gate{Webhook: named("webhook"), Policy: named("policy"), Binding: named("binding")}, true
	}
	return reason.Gate{}, false
}

var (
	denials = []*regexp.Regexp{
		regexp.MustCompile(`^admission webhook "(?<webhook>[^"]*)" denied the request`),
		regexp.MustCompile(`^[^ ]+ (?:"(?:[^"\\]|\\.)*" )?is forbidden: ValidatingAdmissionPolicy '(?<policy>[^']*)' with binding '(?<binding>[^']*)' denied request`),
	}
	// failedCalls match sentences about webhooks that do not answer.
	failedCalls = []*regexp.Regexp{regexp.MustCompile(`^Internal error occurred: failed calling webhook "(?<webhook>[^"]*)"`)}
)

// gateOf returns the admission webhook or policy that caused an error, if the API server names it.
func gateOf(err error) (reason.Gate, bool) {
	status, _ := StatusOf(err)
	return gateIn(status.Message, append(failedCalls, denials...))
}

// decodeStatus decodes a status in JSON or protobuf.
func decodeStatus(contentType string, body []byte) (status metav1.Status, ok bool) {
	kind, _, _ := mime.ParseMediaType(contentType)
	if kind != runtime.ContentTypeProtobuf {
		err := json.Unmarshal(body, &status)
		return status, err == nil && status.Kind == "Status"
	}
	var wrapped runtime.Unknown
	data, ok := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !ok || wrapped.Unmarshal(data) != nil || wrapped.Kind != "Status" || status.Unmarshal(wrapped.Raw) != nil {
		return status, false
	}
	status.Kind, status.APIVersion = wrapped.Kind, wrapped.APIVersion
	return status, true
}
