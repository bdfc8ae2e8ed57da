package forge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"headgate.dev/headgate/reconcile/report"
)

// A Kind identifies a kind of forge by its API, as --forge spells it.
type Kind string

// forges lists every kind of forge. To add one, write its file and add it here, to the options of
// package target and to the API.
//
// The first that recognizes a webhook or a pipeline wins. A forge that imitates another one therefore
// stands before it, and one whose webhooks have only a common header stands last.
var forges = []Forge{gitLabForge, dataCenterForge, bitbucketForge, giteaForge, gitHubForge, azureForge}

// A Forge describes one kind of forge: all that Headgate knows about it. The zero value of every
// function and rule is the behaviour of most forges.
type Forge struct {
	Kind Kind
	Name string // for people
	Also string // another product with the same API, or empty

	TokenHelp   string // a sentence on how to write its tokens, or empty
	WebhookHelp string // a sentence on the secrets of its webhooks, or empty

	// Annotate writes the findings of a report in the format that the forge shows beside the lines of
	// the commit. It is nil if the forge has no such format.
	Annotate func(w io.Writer, r report.Report) error

	addresses
	pipeline pipeline
	webhook  webhook
	dialect  report.Dialect // of comments

	// authorization returns the header that carries a token. nil is a bearer token.
	authorization func(token string) string
	// appToken returns how to get tokens of an App; nil if the forge has no Apps. appUser is the user
	// name with which Git takes such a token.
	appToken func(a App, of Repository, api string, transport http.RoundTripper) func(context.Context) (string, error)
	appUser  string

	// open returns a client of the API, which is at a URL that ends in a slash.
	open func(at Repository, api string, client *http.Client) (client, error)
	// listed is set if the API does not report who may write to an ordinary token: the client is no writerAPI. Then only the
	// people count whom the user lists, and reviews do not.
	listed bool
	// mergeRef is the ref of the commit that merges a pull request into its target, with %d for the
	// number; empty if the forge makes no such commit.
	mergeRef string
	// filePath returns where a browser finds a line of a file of a commit, below the page of the repository. The path is escaped.
	filePath func(commit, path string, line int) string
	// commentPath is where a browser finds a comment, below the page of the repository, with %[1]d for the number of the pull
	// request and %[2]d for the id of the comment.
	commentPath string
}

// addresses describe the URLs of a forge.
type addresses struct {
	public   func(host string) bool   // reports whether a host is the public service of this forge
	labels   []string                 // first labels of host names that identify the forge, as in gitea.example.org
	suggests func(path []string) bool // reports whether only this forge has such a path
	aliases  map[string]alias         // further hosts of the public service

	apiPath   string // of the API below the forge
	publicAPI string // of the API below api.HOST of the public service; empty if it is below HOST as elsewhere

	// split divides the path of a repository below base into what belongs to the forge and the owner;
	// the last segment is the name. It may change base. nil: the owner is one segment.
	split func(base *url.URL, path []string) (below, owner []string)
	// segment matches an owner, a name, and with nested each segment of an owner. nil matches letters,
	// digits, '.', '_' and '-'.
	segment *regexp.Regexp
	nested  bool
	// page returns the URL at which a browser finds a repository of the forge at base. nil: BASE/OWNER/NAME.
	page func(base string, r Repository) string
}

// An alias is the real host behind another name of it. prefix is the segment with which paths begin
// under that name only.
type alias struct{ host, prefix string }

// maxPages is the maximum number of pages that Headgate reads of a listing. It posts a status that is not
// listed once more than needed.
const maxPages = 20

// A client is a connection to the API of a forge, for one repository.
type client interface {
	statusAPI
	pullAPI
}

// All returns every kind of forge.
func All() []Forge { return slices.Clone(forges) }

// Names returns the names of all forges, sorted, including forges that share an API.
func Names() []string {
	var names []string
	for _, f := range forges {
		names = append(names, f.Name)
		if f.Also != "" {
			names = append(names, f.Also)
		}
	}
	sortNames(names)
	return names
}

// Annotators returns how to write findings for the forges that show them beside the lines of a
// commit, by kind.
func Annotators() map[string]func(io.Writer, report.Report) error {
	all := map[string]func(io.Writer, report.Report) error{}
	for _, f := range forges {
		if f.Annotate != nil {
			all[string(f.Kind)] = f.Annotate
		}
	}
	return all
}

// Check returns an error if comments and reviews cannot count on a forge as the rules have it.
func (k Kind) Check(r Rules) error {
	f := k.forge()
	switch {
	case !f.listed:
		return nil
	case r.Reviews:
		return fmt.Errorf("reviews do not count on %s, which does not show when and of what they are; approve with comments", f.Name)
	case len(r.Approvers) == 0:
		return fmt.Errorf("%s does not report who may write to a repository, so only listed people may command Headgate; list the approvers", f.Name)
	}
	return nil
}

// forge returns the description of a kind, which is empty for an unknown one.
func (k Kind) forge() Forge {
	i := slices.IndexFunc(forges, func(f Forge) bool { return f.Kind == k })
	if i < 0 {
		return Forge{}
	}
	return forges[i]
}

// header returns the Authorization header for a token.
func (f Forge) header(token string) string {
	if f.authorization == nil {
		return "Bearer " + token
	}
	return f.authorization(token)
}
