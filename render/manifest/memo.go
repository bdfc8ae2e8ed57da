package manifest

import (
	"errors"
	"path"
)

// A Memo remembers what was learnt of contents, so that a file that did not change need
// not be read again. A value follows from its key and from nothing else: the key names
// the content and what was asked of it. A Memo may forget anything at any time. It is
// safe for concurrent use.
type Memo interface {
	Recall(key string) (value string, ok bool)
	Remember(key, value string)
}

// hashing is a file system that tells the content of a file without reading it.
type hashing interface {
	Hash(name string) (string, error)
}

// key is what a content is remembered by: besides its hash, everything that decides what
// is read of it. It is empty where nothing may be remembered.
func (r *Reader) key(name string) string {
	if r.memo == nil {
		return ""
	}
	hash, err := r.Hash(name)
	if err != nil {
		return "" // reading it returns the error
	}
	return r.keyOf(hash, isJSON(name))
}

// keyOf returns the key of a content with this hash.
func (r *Reader) keyOf(hash string, isJSON bool) string {
	switch {
	case r.memo == nil:
		return ""
	case isJSON:
		return "json" + r.form + hash
	}
	return "yaml" + r.form + hash
}

var errNoHashes = errors.New("these files tell no hashes")

// Hash tells the content of a file without reading it, where the files can.
func (r *Reader) Hash(name string) (string, error) {
	files, ok := r.files.(hashing)
	if !ok {
		return "", errNoHashes
	}
	return files.Hash(name)
}

// Recall returns what the Memo remembers under a key of several files.
func (r *Reader) Recall(key string) (string, bool) {
	if r.memo == nil {
		return "", false
	}
	return r.memo.Recall(key)
}

// Remember has the Memo remember it.
func (r *Reader) Remember(key, value string) {
	if r.memo != nil {
		r.memo.Remember(key, value)
	}
}

func isJSON(name string) bool { return path.Ext(name) == ".json" }

// recall is what is remembered of the file, written over spare.
func (c *content) recall(spare []outlined) (outline, bool) {
	if c.key == "" {
		return outline{}, false
	}
	known, ok := c.memo.Recall(c.key)
	if !ok {
		return outline{}, false
	}
	return decodeOutline(known, spare)
}

// remember remembers the outline of the file, but nothing from a Secret, because a Memo may write to disk.
func (c *content) remember(o outline) {
	switch {
	case c.key == "":
	case o.holdsSecret():
		c.key = ""
	default:
		c.memo.Remember(c.key, o.encode())
	}
}

// Learn is what ask finds out, or found out before: with a Memo it is asked once about
// one content. The answer must depend on nothing but the content of the document and on
// what, which names the question. An error is not remembered.
func (d *Document) Learn(what string, ask func() (string, error)) (string, error) {
	return d.body.learn(what, ask)
}

// Same reports whether two documents are known to hold the same, without reading them.
func (d *Document) Same(as *Document) bool {
	known := d.body.identity()
	return known != "" && known == as.body.identity()
}

// learn is Learn of a part of the content.
func (c *content) learn(key string, ask func() (string, error)) (string, error) {
	if c.key == "" {
		return ask()
	}
	key = c.key + key
	if value, ok := c.memo.Recall(key); ok {
		return value, nil
	}
	value, err := ask()
	if err == nil {
		c.memo.Remember(key, value)
	}
	return value, err
}
