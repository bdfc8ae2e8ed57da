package manifest

import (
	"errors"
	"path"
)

// A Memo stores facts about contents, so that unchanged files need not be read again. A value depends only on its key: the key
// contains the hash of the content and the question about it. A Memo may forget anything at any time. It is safe for concurrent
// use.
type Memo interface {
	Recall(key string) (value string, ok bool)
	Remember(key, value string)
}

// hashing is a file system that knows the hash of a file without reading it.
type hashing interface {
	Hash(name string) (string, error)
}

// key returns the Memo's key for a file: its hash, and everything else that affects the result of reading it. It is empty if
// nothing may be stored.
func (r *Reader) key(name string) string {
	if r.memo == nil {
		return ""
	}
	hash, err := r.Hash(name)
	if err != nil {
		return "" // reading the file returns the error
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

// Hash returns the hash of a file without reading it, if the files support that.
func (r *Reader) Hash(name string) (string, error) {
	files, ok := r.files.(hashing)
	if !ok {
		return "", errNoHashes
	}
	return files.Hash(name)
}

// Recall returns the value that the Memo stores for several files under a key.
func (r *Reader) Recall(key string) (string, bool) {
	if r.memo == nil {
		return "", false
	}
	return r.memo.Recall(key)
}

// Remember stores a value in the Memo.
func (r *Reader) Remember(key, value string) {
	if r.memo != nil {
		r.memo.Remember(key, value)
	}
}

func isJSON(name string) bool { return path.Ext(name) == ".json" }

// recall returns the stored outline of the file. It reuses spare for the documents.
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

// remember stores the outline of the file, but nothing from a Secret, because a Memo may write to disk.
func (c *content) remember(o outline) {
	switch {
	case c.key == "":
	case o.holdsSecret():
		c.key = ""
	default:
		c.memo.Remember(c.key, o.encode())
	}
}

// Learn returns the result of ask. With a Memo, it calls ask only once for the same content. The result must depend only on the
// content of the document and on what, which identifies the question. Errors are not stored.
func (d *Document) Learn(what string, ask func() (string, error)) (string, error) {
	return d.body.learn(what, ask)
}

// LearnFile is Learn for the content of a file that holds no documents. ask must not keep the content.
func (r *Reader) LearnFile(name, what string, ask func(raw []byte) (string, error)) (string, error) {
	return r.content(name).learn(what, func() (answer string, err error) {
		err = readFile(r.files, name, r.limits.FileBytes, func(raw []byte) error {
			if err := r.countBytes(name, int64(len(raw))); err != nil {
				return err
			}
			answer, err = ask(raw)
			return err
		})
		return answer, err
	})
}

// LearnBeside is Learn for a question about the texts of two documents. ask must not keep them. The answer is empty if no file holds
// one of the texts, because a tool built it.
func (d *Document) LearnBeside(other *Document, what string, ask func(text, beside []byte) (string, error)) (answer string, err error) {
	one, isText := d.body.(section)
	two, alsoText := other.body.(section)
	if !isText || !alsoText {
		return "", nil
	}
	read := func() (string, error) {
		err := one.read(func(text []byte) error {
			return two.read(func(beside []byte) error {
				answer, err = ask(text, beside)
				return err
			})
		})
		return answer, err
	}
	if two.identity() == "" {
		return read()
	}
	return one.learn(what+" beside "+two.identity(), read)
}

// Same reports whether two documents are known to have the same content, without reading them.
func (d *Document) Same(as *Document) bool {
	known := d.body.identity()
	return known != "" && known == as.body.identity()
}

// learn is Learn for a part of the content.
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
