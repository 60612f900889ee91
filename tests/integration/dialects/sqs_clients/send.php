<?php
// AsyncAws: creates a queue, sends, receives, extends and deletes a message.
require "AsyncAws/Sqs/autoload.php";

use AsyncAws\Sqs\SqsClient;

$sqs = new SqsClient(["endpoint" => getenv("ENDPOINT"), "region" => "us-east-1",
    "accessKeyId" => getenv("AWS_ACCESS_KEY_ID"), "accessKeySecret" => getenv("AWS_SECRET_ACCESS_KEY")]);
$url = $sqs->createQueue(["QueueName" => "php"])->getQueueUrl();
$id = $sqs->sendMessage(["QueueUrl" => $url, "MessageBody" => "hello from php"])->getMessageId();
foreach ($sqs->receiveMessage(["QueueUrl" => $url, "WaitTimeSeconds" => 5])->getMessages() as $message) {
    $sqs->changeMessageVisibility(["QueueUrl" => $url, "ReceiptHandle" => $message->getReceiptHandle(), "VisibilityTimeout" => 60])->resolve();
    $sqs->deleteMessage(["QueueUrl" => $url, "ReceiptHandle" => $message->getReceiptHandle()])->resolve();
    echo $message->getMessageId() === $id ? "same " : "other ", $message->getBody(), "\n";
}
