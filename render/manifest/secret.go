package manifest

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// EncodeStringData moves the stringData of a Secret to its data, as the API server does when it stores the Secret. Server-side apply
// cannot remove a key of stringData, because no stored Secret has one. Flux does the same. Content that the API server refuses stays
// unchanged, so that it still refuses it.
func EncodeStringData(u *unstructured.Unstructured) {
	if !IDOf(u).IsSecret() {
		return
	}
	plain, found, err := unstructured.NestedStringMap(u.Object, "stringData")
	if !found || err != nil {
		return
	}
	data, is := u.Object["data"].(map[string]any)
	if !is && u.Object["data"] != nil {
		return
	}
	encoded := make(map[string]any, len(data)+len(plain))
	maps.Copy(encoded, data)
	for key, text := range plain {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(u.Object, "stringData")
	if len(plain) > 0 {
		u.Object["data"] = encoded
	}
}
