// @aws-sdk/client-sqs and sqs-consumer: sends a batch of ten, consumes and deletes it, and prints what it has seen.
import { createRequire } from "node:module";

const require = createRequire(process.env.NODE_MODULES + "/");
const { SQSClient, CreateQueueCommand, SendMessageBatchCommand, GetQueueAttributesCommand, SendMessageCommand,
    ReceiveMessageCommand, QueueDoesNotExist, StartMessageMoveTaskCommand, ListMessageMoveTasksCommand } = require("@aws-sdk/client-sqs");
const { Consumer } = require("sqs-consumer");

const sqs = new SQSClient({
    endpoint: process.env.ENDPOINT, region: "us-east-1",
    credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY },
});
const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "node" }));
const Entries = Array.from({ length: 10 }, (_, i) => ({
    Id: `m${i}`, MessageBody: `body ${i}`,
    MessageAttributes: { n: { DataType: "Number", StringValue: String(i) }, b: { DataType: "Binary", BinaryValue: Buffer.from([i]) } },
}));
const sent = await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
if (sent.Successful.length !== 10 || sent.Failed?.length)
    throw new Error(JSON.stringify(sent));

let known = "";
try {
    await sqs.send(new SendMessageCommand({ QueueUrl: QueueUrl + "-none", MessageBody: "x" }));
} catch (error) {
    known = `${error instanceof QueueDoesNotExist} ${error.name}`; // by the code of the older protocol, too
}

const seen = new Set();
await new Promise((resolve, reject) => {
    const consumer = Consumer.create({
        queueUrl: QueueUrl, sqs, batchSize: 10, waitTimeSeconds: 1, messageAttributeNames: ["All"],
        heartbeatInterval: 5, visibilityTimeout: 30,
        handleMessage: async (message) => {
            const i = Number(message.MessageAttributes.n.StringValue);
            if (message.Body !== `body ${i}` || message.MessageAttributes.b.BinaryValue[0] !== i)
                reject(new Error(JSON.stringify(message)));
            seen.add(i);
            return message;
        },
    });
    for (const event of ["error", "processing_error", "timeout_error"])
        consumer.on(event, reject);
    consumer.on("empty", () => {
        consumer.stop();
        resolve();
    });
    consumer.start();
});
const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }));
const none = await sqs.send(new ReceiveMessageCommand({ QueueUrl }));

const dead = (await sqs.send(new CreateQueueCommand({ QueueName: "node-dead" }))).QueueUrl;
await sqs.send(new SendMessageCommand({ QueueUrl: dead, MessageBody: "again" }));
const SourceArn = "arn:aws:sqs:us-east-1:000000000000:node-dead", DestinationArn = "arn:aws:sqs:us-east-1:000000000000:node";
await sqs.send(new StartMessageMoveTaskCommand({ SourceArn, DestinationArn }));
let moved = {};
for (let i = 0; i < 600 && moved.Status !== "COMPLETED"; i++) {
    [moved] = (await sqs.send(new ListMessageMoveTasksCommand({ SourceArn }))).Results;
    await new Promise((resolve) => setTimeout(resolve, 50));
}
console.log(JSON.stringify({ moved: `${moved.Status} ${moved.ApproximateNumberOfMessagesMoved}`, seen: seen.size, known, left: Attributes.ApproximateNumberOfMessages,
    hidden: Attributes.ApproximateNumberOfMessagesNotVisible, none: none.Messages?.length ?? 0 }));
