package iam

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// signed returns whose key signed a request, and for which service.
func signed(r *http.Request) (role, service string, err error) {
	_, credential, found := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	if !found {
		credential = r.URL.Query().Get("X-Amz-Credential")
	}
	// KEY/DATE/REGION/SERVICE/aws4_request
	scope := strings.Split(credential, "/")
	if len(scope) < 5 {
		return "", "", fmt.Errorf("%s %s is not signed", r.Method, r.URL)
	}
	return scope[0], scope[3], nil
}

// Asks returns what a request to a service asks for, and what the service asks KMS for in the name of the caller.
func (p *Policies) Asks(service string, r *http.Request, body []byte) ([]Ask, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var asks []Ask
	var err error
	switch service {
	case "dynamodb":
		asks, err = p.dynamoDB(operation, body)
	case "sqs":
		asks, err = p.sqs(operation, body)
	case "s3":
		asks, err = p.s3(r)
	case "sns", "cloudformation":
		asks, err = p.form(service, body)
	case "events":
		asks, err = p.events(operation, body)
	case "ssm", "secretsmanager":
		asks, err = p.secrets(service, operation, body)
	default:
		err = fmt.Errorf("the service %s is not known here", service)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", service, operation, err)
	}
	for _, a := range asks {
		asks = append(asks, p.kms(service, a)...)
	}
	return asks, nil
}

// kms returns what a service asks KMS for in the name of the caller.
func (p *Policies) kms(service string, a Ask) (asks []Ask) {
	resource := a.Resource
	var actions []string
	switch service {
	case "dynamodb":
		resource, _, _ = strings.Cut(resource, "/index/")
		actions = []string{"Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKey", "DescribeKey"}
	case "s3":
		resource = "arn:aws:s3:::" + bucketOf(resource)
		actions = map[string][]string{"s3:GetObject": {"Decrypt"}, "s3:PutObject": {"GenerateDataKey", "Decrypt"}}[a.Action]
	default:
		actions = map[string][]string{
			"sqs:SendMessage": {"GenerateDataKey", "Decrypt"}, "sqs:ReceiveMessage": {"Decrypt"}, "sns:Publish": {"GenerateDataKey", "Decrypt"},
		}[a.Action]
	}
	key := p.keys[resource]
	if key == "" {
		return nil
	}
	via := map[string][]string{"kms:ViaService": {service + "." + p.Region + ".amazonaws.com"}}
	for _, action := range actions {
		asks = append(asks, Ask{"kms:" + action, key, via})
	}
	return asks
}

// sqs: a batch is as many requests as it has entries, to IAM as to the queue.
func (p *Policies) sqs(operation string, body []byte) ([]Ask, error) {
	var r struct{ QueueUrl, QueueName string }
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	name := r.QueueName
	if name == "" {
		name = path.Base(r.QueueUrl)
	}
	return []Ask{{Action: "sqs:" + strings.TrimSuffix(operation, "Batch"), Resource: p.arn("sqs", name)}}, nil
}

func bucketOf(arn string) string {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:s3:::"), "/")
	return bucket
}

// s3 reads a request whose path begins with the bucket.
func (p *Policies) s3(r *http.Request) ([]Ask, error) {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	on := func(action, resource string) Ask {
		return Ask{"s3:" + action, "arn:aws:s3:::" + resource, map[string][]string{"aws:ResourceAccount": {p.Account}}}
	}
	whole := bucket + "/" + object
	switch {
	case object == "" && r.Method == http.MethodGet && (q.Has("list-type") || q.Has("prefix")), object == "" && r.Method == http.MethodHead:
		return []Ask{on("ListBucket", bucket)}, nil
	case object == "":
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return []Ask{on("GetObject", whole)}, nil
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return []Ask{on("AbortMultipartUpload", whole)}, nil
	case r.Method == http.MethodDelete:
		return []Ask{on("DeleteObject", whole)}, nil
	case r.Method == http.MethodPut, r.Method == http.MethodPost && (q.Has("uploads") || q.Has("uploadId")):
		asks := []Ask{on("PutObject", whole)}
		if from := r.Header.Get("X-Amz-Copy-Source"); from != "" {
			from, err := url.PathUnescape(strings.TrimPrefix(from, "/"))
			return append(asks, on("GetObject", from)), err
		}
		return asks, nil
	}
	return nil, fmt.Errorf("%s %s", r.Method, r.URL)
}

// form reads a request of the services whose requests are forms.
func (p *Policies) form(service string, body []byte) ([]Ask, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	resource := form.Get("TopicArn")
	if service == "cloudformation" {
		resource = p.arn(service, "stack/"+form.Get("StackName")+"/id")
	}
	return []Ask{{Action: service + ":" + form.Get("Action"), Resource: resource}}, nil
}

func (p *Policies) events(operation string, body []byte) (asks []Ask, err error) {
	var r struct {
		Entries []struct{ EventBusName string }
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	for _, e := range r.Entries {
		asks = append(asks, Ask{Action: "events:" + operation, Resource: p.arn("events", "event-bus/"+e.EventBusName)})
	}
	return asks, nil
}

// elsewhere is before the name of a parameter that is kept as a secret of Secrets Manager.
const elsewhere = "aws/reference/secretsmanager/"

// secrets: what Parameter Store reads in Secrets Manager, it reads in the name of the caller.
func (p *Policies) secrets(service, operation string, body []byte) ([]Ask, error) {
	var r struct{ Name, SecretId string }
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	there := func(action, name string) Ask {
		return Ask{Action: "secretsmanager:" + action, Resource: p.arn("secretsmanager", "secret:"+name+"-AbCdEf")}
	}
	if service == "secretsmanager" {
		return []Ask{there(operation, r.SecretId)}, nil
	}
	name := strings.TrimPrefix(r.Name, "/")
	asks := []Ask{{Action: "ssm:" + operation, Resource: p.arn("ssm", "parameter/"+name)}}
	if secret, is := strings.CutPrefix(name, elsewhere); is {
		asks = append(asks, there("GetSecretValue", secret), there("DescribeSecret", secret))
	}
	return asks, nil
}
