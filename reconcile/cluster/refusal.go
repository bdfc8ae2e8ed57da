package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// asRefusal makes the answer of an admission webhook or policy that denies a request one of code 403. The API server passes on
// the code that its author chose, and none of them means what it means in the answer of an API server: 404 is not that the
// object is gone, 409 not that another writer was faster, 429 not that the API server is busy, 413 not that the object is too
// large for it.
func asRefusal(resp *http.Response) {
	if !hasAny(peek(resp), []string{"denied the request", "denied request"}) { // JSON escapes the quotes before
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		resp.Body = readCloser{broken{err}, resp.Body}
		return
	}
	answer := bytes.NewReader(body)
	if status, ok := decodeStatus(resp.Header.Get("Content-Type"), body); ok && gateIn(status.Message, denials) != "" {
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

// gateIn returns which admission webhook or policy the message of an API server names, in one of some sentences; "" if it names
// none. Text that others wrote may follow in a message, and does not count.
func gateIn(message string, sentences []*regexp.Regexp) string {
	for _, like := range sentences {
		if found := like.FindStringSubmatch(message); found != nil {
			return fmt.Sprintf("%s %q", found[1], found[2])
		}
	}
	return ""
}

var (
	denials = []*regexp.Regexp{
		regexp.MustCompile(`^(admission webhook) "([^"]*)" denied the request`),
		regexp.MustCompile(`^[^ ]+ (?:"[^"]*" )?is forbidden: (ValidatingAdmissionPolicy) '([^']*)' with binding '[^']*' denied request`),
	}
	// failedCalls are sentences about webhooks that do not answer.
	failedCalls = []*regexp.Regexp{regexp.MustCompile(`failed calling (webhook) "([^"]*)"`)}
)

// decodeStatus decodes a status as API servers send it.
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
