package preflight

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clockSkew is how many seconds two clocks may differ.
const clockSkew = 30

// A Clock is how many seconds the clock of a server is ahead of ours.
type Clock struct {
	Of    string // the server
	Ahead int64
	Known bool // the server sent its time
}

// Judge judges the difference.
func (c Clock) Judge() Result {
	switch {
	case !c.Known:
		return unknown("", "%s sends no time", c.Of)
	case c.Ahead > clockSkew, c.Ahead < -clockSkew:
		word, by := "ahead", c.Ahead
		if by < 0 {
			word, by = "behind", -by
		}
		return warn("synchronise the clocks: tokens of Apps, certificates and approvals depend on them", "the clock of %s is %s %s", c.Of, span(by), word)
	}
	return fine("the clock of %s is ours, within %d s", c.Of, clockSkew)
}

// An Expiry is until when a credential is valid, as far as the credential itself or its server shows it.
type Expiry struct {
	Of      string // what it is, such as "the client certificate of the kubeconfig"
	At      string // the time, for messages
	Left    int64  // seconds from now
	Known   bool   // the credential has an expiry
	Endless bool   // it is known that the credential does not expire
	Renewed bool   // something renews it, such as the kubelet
	Hidden  string // why the expiry is not known
}

// ExpiresAt returns the expiry of a credential that shows it.
func ExpiresAt(of string, at, now metav1.Time) Expiry {
	return Expiry{Of: of, At: at.UTC().Format("2006-01-02 15:04 UTC"), Left: int64(at.Sub(now.Time).Seconds()), Known: true}
}

// soon is the number of seconds before an expiry in which a person should act.
const soon = 14 * 24 * 3600

// Judge judges the expiry.
func (e Expiry) Judge() Result {
	switch {
	case e.Endless:
		return fine("%s does not expire", e.Of)
	case !e.Known:
		return unknown("", "%s does not show when it expires%s", e.Of, after(": ", e.Hidden))
	case e.Left <= 0:
		return fail("replace it", "%s expired at %s", e.Of, e.At)
	case e.Renewed:
		return fine("%s expires at %s, and is renewed before", e.Of, e.At)
	case e.Left < soon:
		return warn("replace it before", "%s expires in %s, at %s", e.Of, span(e.Left), e.At)
	}
	return fine("%s expires at %s", e.Of, e.At)
}

func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// span words a number of seconds.
func span(seconds int64) string {
	switch {
	case seconds < 120:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 2*3600:
		return fmt.Sprintf("%d min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%d h", seconds/3600)
	}
	return fmt.Sprintf("%d days", seconds/(24*3600))
}
