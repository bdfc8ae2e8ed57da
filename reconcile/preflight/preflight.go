// Package preflight judges whether passes of a Sync will work, before the first one. Adapters read facts from a cluster, a forge,
// registries and credentials; the functions of this package turn each fact into a Result. Package target runs the checks.
package preflight

import (
	"fmt"
	"strings"
)

// A Status is the result of a check in a word.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning"   // passes work, and something needs attention
	Failed  Status = "failed"    // passes will not work
	Unknown Status = "not known" // it could not be read
	Skipped Status = "skipped"   // it does not apply, or the user asked to leave it out
)

// Statuses lists every status, the most urgent first.
var Statuses = []Status{Failed, Warning, Unknown, Skipped, OK}

// A Need is what a check reads, besides the Sync.
type Need string

// The needs.
const (
	Nothing  Need = ""
	Cluster  Need = "cluster"
	Forge    Need = "forge"
	Commit   Need = "repository"
	Registry Need = "registries"
)

// A Result is what a check found.
type Result struct {
	Check   string `json:"check"`
	Sync    string `json:"sync,omitempty"` // namespace/name; empty if the result is about the cluster
	Status  Status `json:"status"`
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`   // what a person should do
	Docs    string `json:"docs,omitempty"` // a file of the project's repository
}

// Failures reports whether a check failed.
func Failures(all []Result) bool { return Count(all)[Failed] > 0 }

// Count returns the number of results with each status.
func Count(all []Result) map[Status]int {
	count := map[Status]int{}
	for _, r := range all {
		count[r.Status]++
	}
	return count
}

// NotRead returns the result of a check whose fact could not be read.
func NotRead(err error) Result { return Result{Status: Unknown, Message: err.Error()} }

// Refused returns the result of a check without which nothing can be read.
func Refused(err error, do string) Result {
	return Result{Status: Failed, Message: err.Error(), Do: do}
}

// Leave returns the result of a check that is left out.
func Leave(format string, args ...any) Result {
	return Result{Status: Skipped, Message: fmt.Sprintf(format, args...)}
}

func fine(format string, args ...any) Result {
	return Result{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func warn(do, format string, args ...any) Result {
	return Result{Status: Warning, Message: fmt.Sprintf(format, args...), Do: do}
}

func fail(do, format string, args ...any) Result {
	return Result{Status: Failed, Message: fmt.Sprintf(format, args...), Do: do}
}

func unknown(do, format string, args ...any) Result {
	return Result{Status: Unknown, Message: fmt.Sprintf(format, args...), Do: do}
}

// mostListed is the maximum number of things that a message names.
const mostListed = 5

// list joins the first few words of a list.
func list(words []string) string {
	if more := len(words) - mostListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:mostListed], ", "), more)
	}
	return strings.Join(words, ", ")
}

// counted returns a number with the singular or plural of a word.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
