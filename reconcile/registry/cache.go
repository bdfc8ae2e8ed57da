package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/disk"
)

// A cache keeps pulled blobs on disk. A blob is named by its digest, written as a whole, and hashed at every read, so
// that processes need not wait for each other. The cache also records the last known digests of tags. It may be deleted
// at any time, and ignores damaged files.
//
//	sha256/ab/abcd…  tags/abcd….json
type cache struct {
	dir    string
	bytes  int64        // maximum size of all blobs; the oldest are deleted
	budget *disk.Budget // of everything in a directory around it; may be nil
}

const (
	cacheBytes = 1 << 30
	writing    = "writing-" // prefix of incomplete files
)

// errAbsent is the error for content that the cache does not hold.
var errAbsent = errors.New("it is not in the cache")

func (c cache) blob(digest string) string {
	hash := strings.TrimPrefix(digest, "sha256:")
	return filepath.Join(c.dir, "sha256", hash[:2], hash)
}

// open opens a blob whose content matches its name, and renews its age.
func (c cache) open(digest string) (io.ReadCloser, error) {
	name := c.blob(digest)
	f, err := os.Open(name)
	if err != nil {
		return nil, errAbsent
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != strings.TrimPrefix(digest, "sha256:") {
		err = errors.New("damaged")
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(name) // it is pulled again
		return nil, errAbsent
	}
	if now := time.Now(); ageOf(f) > time.Hour {
		_ = os.Chtimes(name, now, now)
	}
	return f, nil
}

func ageOf(f *os.File) time.Duration {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime())
}

// holds reports whether the cache has an intact blob.
func (c cache) holds(digest string) bool {
	f, err := c.open(digest)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// read returns a small blob.
func (c cache) read(digest string, most int64) ([]byte, error) {
	f, err := c.open(digest)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return raw, errors.Join(err, f.Close())
}

// store stores a blob if its content matches its digest and is not larger than most.
func (c cache) store(share *disk.Share, digest string, most int64, from io.Reader) error {
	return c.write(c.blob(digest), func(to io.Writer) error {
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(share.To(to), sum), io.LimitReader(from, most+1))
		switch {
		case err != nil:
			return err
		case n > most:
			return fmt.Errorf("it is larger than the declared %d bytes", most)
		case "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest:
			return fmt.Errorf("the received content does not match %s", digest)
		}
		return nil
	})
}

// write atomically writes a file.
func (c cache) write(name string, content func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	to, err := os.CreateTemp(filepath.Dir(name), writing)
	if err != nil {
		return err
	}
	err = errors.Join(content(to), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
}

// An answerRecord is the last answer of a registry.
type answerRecord struct {
	Of   string   `json:"of"`             // the tag, the repository, or the proofs of an image
	Tags []string `json:"tags,omitempty"` // tags of the repository, or digests of the images with proofs

	Digest   string `json:"digest,omitempty"`
	Revision string `json:"revision,omitempty"` // the commit of the last request
	First    string `json:"first,omitempty"`    // the digest at the first request for that commit
}

func (c cache) tag(of string) string {
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(c.dir, "tags", hex.EncodeToString(sum[:])+".json")
}

// recall returns the last answer about a tag or a repository.
func (c cache) recall(of string) (answerRecord, bool) {
	raw, err := os.ReadFile(c.tag(of))
	if err != nil {
		return answerRecord{}, false
	}
	var known answerRecord
	err = json.Unmarshal(raw, &known)
	return known, err == nil && known.Of == of
}

// remember stores an answer. If that fails, Headgate only has to ask again.
func (c cache) remember(s answerRecord) {
	raw, err := json.Marshal(s)
	if err != nil {
		return
	}
	_ = c.write(c.tag(s.Of), func(to io.Writer) error {
		_, err := to.Write(raw)
		return err
	})
}

// sweep deletes the least recently used blobs until the rest is within the limit, and temporary files of killed processes.
func (c cache) sweep() {
	type file struct {
		name string
		fs.FileInfo
	}
	var files []file
	names, _ := filepath.Glob(filepath.Join(c.dir, "*", "*")) // the pattern is well-formed
	blobs, _ := filepath.Glob(filepath.Join(c.dir, "sha256", "*", "*"))
	for _, name := range append(names, blobs...) {
		info, err := os.Lstat(name)
		switch {
		case err != nil || !info.Mode().IsRegular(): // another process deleted it
		case strings.HasPrefix(info.Name(), writing) && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(name)
		case filepath.Ext(name) == "":
			files = append(files, file{name, info})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return b.ModTime().Compare(a.ModTime()) })
	left := c.bytes
	for _, f := range files {
		if left -= f.Size(); left < 0 {
			_ = os.Remove(f.name)
		}
	}
}
