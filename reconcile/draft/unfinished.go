package draft

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhooksOf returns the names of the webhooks in a webhook configuration, according to its managed fields.
func webhooksOf(live metav1.Object) []string {
	var names []string
	for _, m := range live.GetManagedFields() {
		var fields struct {
			Webhooks map[string]json.RawMessage `json:"f:webhooks"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Webhooks {
			var item struct{ Name string }
			if of, is := strings.CutPrefix(key, "k:"); is && json.Unmarshal([]byte(of), &item) == nil {
				names = append(names, item.Name)
			}
		}
	}
	return names
}
