// Package registry wraps what fetches commits: it fills in the packages that a commit
// mentions and does not hold, from the registries that have them. Which ones a commit needs,
// and in what version, is for package render; what it pulled once it keeps on disk.
//
//	Fetch ─► Input ─Read─► Documents ─Missing─► Requests ─pull─► Images ─┐
//	                           ▲────────── until nothing is missing ─────────┘
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/scratch"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-containerregistry/pkg/authn"
)

// A Fetcher fetches the commits that a Resolver completes.
type Fetcher interface {
	Fetch(ctx context.Context, ref string) (render.Input, error)
}

// A Resolver fetches commits with the packages that they mention. It is safe for concurrent use.
// A package that cannot be pulled is no error of Fetch: the package holds the error, and render
// decides what follows.
type Resolver struct {
	Next     Fetcher
	How      render.Options // as the commits are rendered
	Cache    string         // the directory for what was pulled; "" is a temporary one
	Offline  bool           // ask no registry: what the cache holds is all there is
	Keychain authn.Keychain // nil is the docker configuration of the user

	// Secret reads the Secrets that a commit has Crossplane pull with, and those of public keys;
	// nil where there is no cluster. Hide receives what is secret in them; may be nil.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	Hide   func(value string)

	// KeyFiles are files of public keys by what an ImageConfig calls them, as "secret/key": they
	// count before what the cluster has. TrustedRoot is the file of a trusted root of sigstore, as
	// trusted_root.json of the public one; without it no identity is verified.
	KeyFiles    map[string]string
	TrustedRoot string

	// Installed are the packages of the cluster that commits are for, which are nil where it has
	// no Crossplane; nil where there is no cluster.
	Installed func(ctx context.Context) ([]crossplane.Installed, error)
	// Images are the ImageConfigs of that cluster, which are nil where it has no Crossplane; nil
	// where there is no cluster.
	Images func(ctx context.Context) ([]packages.LiveConfig, error)

	// Ask answers requests in another process, without their content, which the cache holds; nil: this process asks.
	Ask func(ctx context.Context, r packages.Request) (packages.Image, error)

	// Keeps has packages that cannot be pulled read from the content that the commit keeps. It is for commits that are only compared.
	Keeps bool

	// Tags has the tag resolved of a version that a lock pins, too, to report a difference: the lock does not bind Crossplane.
	Tags bool

	// Fork is set when the commits come from a fork. Then Keychain, Secret and Installed are not used, and only the
	// registries in Fork are asked. The signatures that the cluster demands, in Images, hold regardless of the commit.
	Fork *Fork

	// Fresh is the maximum age of the digest of a tag; 0: each tag is read once, for all commits of a
	// process, so that a comparison sees one image on both sides.
	Fresh time.Duration

	mu     sync.Mutex
	made   scratch.Dir         // the temporary directory
	pulls  *puller             // made with the first package
	recent map[string]answered // by revision
}

// An answered commit is one whose packages are known.
type answered struct {
	packages  []packages.Image
	installed []crossplane.Installed
	images    []packages.LiveConfig
	at        time.Time
}

const (
	most     = 64 // rounds of finding what packages depend on
	together = 4  // packages that are pulled at a time
	kept     = 4  // commits whose answers are remembered
)

// Fetch fetches a commit, and what it mentions.
func (s *Resolver) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := s.Next.Fetch(ctx, ref)
	if err != nil {
		return in, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	looked := false // at the cluster
	if known, ok := s.recent[in.Revision]; ok && in.Revision != "" && (s.Fresh == 0 || time.Since(known.at) < s.fresh(known.packages)) {
		in.Packages = known.packages
		if len(in.Packages) == 0 {
			return in, ctx.Err()
		}
		if err = s.look(ctx, &in); err != nil || slices.Equal(in.Installed, known.installed) && reflect.DeepEqual(in.Images, known.images) {
			return in, err
		}
		looked = true
	}
	in.Packages = []packages.Image{}
	began := time.Now()
	docs, unreadable := render.Read(in, s.How) // then nothing is missing, and Render reports why
	for round := 0; unreadable == nil; round++ {
		docs = docs.With(in, s.How)
		missing := docs.Missing()
		if len(missing) == 0 {
			break
		}
		if round == most {
			return in, fmt.Errorf("what packages depend on has no end: after %d rounds %s is still missing", most, missing[0].Source)
		}
		if s.Fork != nil && len(in.Packages)+len(missing) > maxOfFork {
			return in, fmt.Errorf("%s: this commit of a fork asks for more than %d packages", missing[0].Origin, maxOfFork)
		}
		if round == 0 {
			if err := s.begin(in.Revision, missing); err != nil {
				return in, err
			}
			if !looked {
				if err := s.look(ctx, &in); err != nil {
					return in, err
				}
				docs = docs.With(in, s.How)
				missing = docs.Missing()
			}
		}
		in.Packages = merged(in.Packages, s.withKept(in.Files, s.answer(ctx, missing)))
		if err := ctx.Err(); err != nil {
			return in, err
		}
	}
	if s.pulls != nil {
		s.pulls.cache.sweep()
	}
	s.remember(in, began)
	if unreadable == nil {
		in.Documents = &docs
	}
	return in, nil
}

// look asks the cluster, if there is one, for what it has.
func (s *Resolver) look(ctx context.Context, in *render.Input) (err error) {
	if s.Installed != nil && s.Fork == nil {
		if in.Installed, err = s.Installed(ctx); err != nil {
			return err
		}
	}
	if s.Images == nil {
		return nil
	}
	in.Images, err = s.Images(ctx)
	if err != nil && s.Fork != nil && ctx.Err() == nil { // a pass reports the reason
		return errors.New("the ImageConfigs of the cluster cannot be read, so it is not known what signatures it demands")
	}
	return err
}

// fresh is how long the answers for a commit hold: a minute where one of its objects has Crossplane
// look every minute.
func (s *Resolver) fresh(images []packages.Image) time.Duration {
	always := slices.ContainsFunc(images, func(i packages.Image) bool { return i.Request.PullPolicy == packages.PullAlways })
	if always {
		return min(s.Fresh, time.Minute)
	}
	return s.Fresh
}

// begin makes ready to pull what a commit mentions.
func (s *Resolver) begin(revision string, requests []packages.Request) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if s.pulls == nil {
		s.pulls = newPuller(s)
	}
	asked := make([]packages.Image, len(requests))
	for i, r := range requests {
		asked[i].Request = r
	}
	s.pulls.begin(revision, s.fresh(asked))
	return nil
}

// Close removes temporary files. Fetched content cannot be read after that.
func (s *Resolver) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made.Path == "" {
		return nil
	}
	return s.made.Remove()
}

// answer answers requests, some at a time, in their order.
func (s *Resolver) answer(ctx context.Context, requests []packages.Request) []packages.Image {
	images := make([]packages.Image, len(requests))
	manifest.EachOf(len(requests), together, func(i int) {
		if s.Ask == nil {
			images[i] = s.pulls.answer(ctx, requests[i])
		} else {
			images[i] = s.asked(ctx, requests[i])
		}
	})
	return images
}

// asked is the answer of another process, whose content is in the cache.
func (s *Resolver) asked(ctx context.Context, r packages.Request) packages.Image {
	i, err := s.Ask(ctx, r)
	if err != nil {
		return packages.Image{Request: r, Version: r.Version, Err: err}
	}
	i.Request = r
	if i.Err == nil {
		i.Open = s.pulls.opener(ctx, r, i)
	}
	return i
}

// Answer answers a request of another process, and has what it opens in the cache. It reads nothing of the content.
func (s *Resolver) Answer(ctx context.Context, revision string, r packages.Request) (packages.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls == nil || s.pulls.revision != revision {
		if err := s.begin(revision, []packages.Request{r}); err != nil {
			return packages.Image{}, err
		}
	}
	return s.pulls.answer(ctx, r), nil
}

// Again makes the next resolution ask registries again that did not answer.
func (s *Resolver) Again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls != nil {
		s.pulls.again()
	}
}

// Versions returns the tags of the repository of a package, in no order.
func (s *Resolver) Versions(ctx context.Context, of packages.Request) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls == nil {
		if err := s.begin("", []packages.Request{of}); err != nil {
			return nil, err
		}
	}
	tags, _, err := s.pulls.list(ctx, of)
	return tags, err
}

// makeDir makes a temporary directory for images if none is set.
func (s *Resolver) makeDir() (err error) {
	if s.Cache == "" && s.made.Path == "" {
		s.made, err = scratch.New("packages")
	}
	return err
}

// Directory returns the directory of pulled images. It creates a temporary one if none is set.
func (s *Resolver) Directory() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeDir(); err != nil {
		return "", err
	}
	return cmp.Or(s.Cache, s.made.Path), nil
}

// merged returns images, each replaced by the newer one with the same source if there is one.
func merged(images, newer []packages.Image) []packages.Image {
	images = slices.DeleteFunc(slices.Clone(images), func(i packages.Image) bool {
		return slices.ContainsFunc(newer, func(n packages.Image) bool { return n.Request.Source == i.Request.Source })
	})
	images = append(images, newer...)
	slices.SortFunc(images, func(a, b packages.Image) int { return cmp.Compare(a.Request.Source, b.Request.Source) })
	return images
}

// remember keeps the answers for a commit for a while, if they have no problems. If the tree has a copy, a pass does
// not wait for a silent registry.
func (s *Resolver) remember(in render.Input, at time.Time) {
	troubled := slices.ContainsFunc(in.Packages, func(i packages.Image) bool {
		return (i.Err != nil || i.Kept != nil || len(i.Findings) > 0) && !i.Request.Copied
	})
	if in.Revision == "" || troubled {
		delete(s.recent, in.Revision)
		return
	}
	if s.recent == nil || len(s.recent) >= kept {
		s.recent = map[string]answered{}
	}
	s.recent[in.Revision] = answered{in.Packages, in.Installed, in.Images, at}
}

// errOffline is the error for content that only a registry has.
var errOffline = errors.New("it is not in the cache, and no registry is asked")
